/** Prints help in upstream's layout: description, examples, commands, flags with defaults, usage. */
import { commandLines, nameWidth } from '#lib/commands.ts'
import type { Flag } from '#lib/flags/flags.ts'

import type { Command, CommandRow, Flags } from './command.ts'

const PLUGINS = 'Subcommands provided by plugins:'

/** The order of the headings in `kubectl --help`. */
const HEADINGS = [
  'Basic Commands (Beginner):',
  'Basic Commands (Intermediate):',
  'Deploy Commands:',
  'Cluster Management Commands:',
  'Troubleshooting and Debugging Commands:',
  'Advanced Commands:',
  'Settings Commands:',
  PLUGINS,
]

/** `plugins` are commands that plugins add to the root. */
export function helpOf(command: Command, path: string, plugins: readonly string[] = []): string {
  const isRoot = command.name === 'kubectl'
  const sections = [
    command.long.trim(),
    command.aliases === undefined ? '' : `Aliases:\n${[command.name, ...command.aliases].join(', ')}`,
    command.examples === undefined ? '' : `Examples:\n${indented(command.examples)}`,
    ...commandSections([...(command.commands ?? []), ...plugins.map(pluginRow)], isRoot),
    isRoot || Object.keys(command.flags).length === 0 ? '' : `Options:\n${flagsText(command.flags)}`,
    `Usage:\n  ${`${path} ${command.use}`.trim()}`,
    command.commands === undefined ? '' : `Use "${path} <command> --help" for more information about a given command.`,
    command.name === 'options'
      ? ''
      : 'Use "kubectl options" for a list of global command-line options (applies to all commands).',
  ]
  return `${sections.filter((section) => section !== '').join('\n\n')}\n`
}

function pluginRow(name: string): Omit<CommandRow, 'load'> {
  const short = `The command ${name} is a plugin installed by the user`
  return { name, short, group: PLUGINS }
}

function indented(text: string): string {
  return text
    .trim()
    .split('\n')
    .map((line) => `  ${line.trim()}`)
    .join('\n')
}

function commandSections(rows: readonly Omit<CommandRow, 'load'>[], isRoot: boolean): string[] {
  const shown = rows.filter(({ hidden }) => !hidden)
  if (shown.length === 0) return []
  const lines = (group: typeof shown): string => commandLines(group, nameWidth(shown)).join('\n')
  if (!isRoot) return [`Available Commands:\n${lines(shown)}`]
  const groups = [...HEADINGS, undefined].map((heading) => {
    const members = shown.filter(({ group }) => group === heading)
    // Upstream prints this heading even if it has no commands.
    if (members.length === 0) return heading === PLUGINS ? PLUGINS : ''
    return `${heading ?? 'Other Commands:'}\n${lines(members)}`
  })
  return groups
}

/** One line for each flag with its default, and the usage below. */
export function flagsText(flags: Flags): string {
  return Object.keys(flags)
    .sort()
    .map((name) => ({ name, flag: flags[name] as Flag<unknown> }))
    .filter(({ flag }) => flag.hidden !== true && flag.deprecated === undefined)
    .map(({ name, flag }) => {
      const short = flag.shorthand === undefined ? '' : `-${flag.shorthand}, `
      return `    ${short}--${name}=${defaultText(flag)}:\n\t${flag.usage.replaceAll('`', '')}`
    })
    .join('\n\n')
}

function defaultText({ kind, initial }: Flag<unknown>): string {
  const text = kind.print(initial)
  return kind.type === 'string' ? `'${text}'` : text
}
