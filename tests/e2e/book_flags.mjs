// The flags of our programs in commands that a test cannot run, compared with what each program's --help lists.
import { execFileSync } from 'node:child_process';
import { epimetheus, epitool, helpFlags } from './lib.mjs';

/** What speaks of a program and does not start it. */
const OTHERS = new Set(('adduser apt apt-get cat chmod chown cp curl getent grep helm install journalctl kubectl ls make mkdir mv ps rm rsync scp ' +
  'setfacl setpriv systemctl tar touch useradd usermod wget').split(' '));
const STATEMENT = /#.*|(?:[^\s;|&'"#]|'[^']*'|"(?:\\[^]|[^"\\])*"|(?<=\S)#)+|[;|&\n]/g;

function flagsOf(program, ...command) {
  const help = execFileSync(program, [...command, '--help']).toString();
  const flags = new Set();
  for (const flag of helpFlags(help)) {
    flags.add(flag.replace('[no-]', ''));
    if (flag.startsWith('[no-]')) flags.add(flag.replace('[no-]', 'no-'));
  }
  if (!flags.has('help')) throw new Error(`no flags of ${program} ${command.join(' ')} in: ${help}`);
  return flags;
}

/** Commands of epitool, "check config" and "query" among them. */
const commandsOf = () => [...execFileSync(epitool, ['--help']).toString().matchAll(/^ {2}([a-z]+(?: [a-z]+)?)(?= [[A-Z]| [a-z]+\|)/gm)].map((m) => m[1]);

/** The statements of a shell's text, as words without quotes. */
function statementsOf(text) {
  const out = [[]];
  for (const [word] of text.replaceAll('\\\n', ' ').matchAll(STATEMENT)) {
    if (word.startsWith('#')) continue;
    if (/^[;|&\n]$/.test(word)) out.push([]);
    else out.at(-1).push(word.replace(/^(\w+=)?["$(`]+(?=[\w./])/, '').replace(/['"`]/g, ''));
  }
  return out.filter((words) => words.length);
}

let known;
function knownFlags() {
  if (known) return known;
  known = new Map([['epimetheus', flagsOf(epimetheus)]]);
  for (const command of commandsOf()) known.set(`epitool ${command}`, flagsOf(epitool, ...command.split(' ')));
  return known;
}

/** What is wrong with the flags of our programs in `text`, in words. */
export function wrongFlags(text) {
  const wrong = [];
  for (const words of statementsOf(text)) {
    const first = words.find((w) => w !== 'sudo' && !/^\w+=/.test(w));
    const at = words.findIndex((w) => /^(?:.*\/)?(epimetheus|epitool)$/.test(w));
    if (at < 0 || OTHERS.has(first)) continue;
    const rest = words.slice(at + 1).map((w) => w.replace(/\)+$/, ''));
    let program = words[at].split('/').at(-1);
    if (program === 'epitool') {
      const named = [rest.slice(0, 2).join(' '), rest[0]].find((c) => knownFlags().has(`epitool ${c}`));
      if (named === undefined && rest[0]?.startsWith('--')) continue; // --help, --version
      program = `epitool ${named ?? rest[0] ?? ''}`;
    }
    const flags = knownFlags().get(program);
    if (!flags) wrong.push(`there is no ${program}`);
    for (const word of flags ? rest : []) {
      const [, name] = /^--([a-zA-Z][\w.-]*)/.exec(word) ?? [];
      if (name && !flags.has(name)) wrong.push(`${program} has no flag --${name}`);
    }
  }
  return wrong;
}
