/** Completion for plugins: their names, and arguments from a `kubectl_complete-` program. */
import { execFile } from 'node:child_process'
import { basename } from 'node:path'

import { findCommand } from '#lib/commands.ts'
import type { ProgramContext } from '#lib/program.ts'

import type { CommandRow } from '../command.ts'
import { findProgram } from '../plugins/dispatch.ts'
import { listPlugins } from '../plugins/listing.ts'
import { type Answer, DEFAULT } from './answer.ts'

const MAX_BYTES = 1 << 20

/** The words of each plugin: `get-all sub` for kubectl-get_all-sub. */
export async function pluginWords(path: string): Promise<string[][]> {
  const names = (await listPlugins(path)).map((file) => basename(file).split('-').slice(1))
  return names.map((words) => words.map((word) => word.replaceAll('_', '-')))
}

/** The distinct words of plugins that may follow `path` where kubectl has no such command. */
export function wordsBehind(
  plugins: readonly string[][],
  path: readonly string[],
  rows: readonly CommandRow[],
): string[] {
  const behind = plugins
    .filter((words) => path.every((word, at) => words[at] === word))
    .map((words) => words[path.length])
  return [...new Set(behind)].filter(
    (word) => word !== undefined && word !== '' && !findCommand(rows, word),
  ) as string[]
}

export function describedPlugin(word: string): string {
  return `${word}\tThe command ${word} is a plugin installed by the user`
}

type PluginContext = Pick<ProgramContext, 'env' | 'cwd' | 'stderr'>

/** Undefined if the first words name no plugin. */
export async function pluginAnswer(
  context: PluginContext,
  args: readonly string[],
  typed: string,
): Promise<Answer | undefined> {
  const path = context.env['PATH'] ?? ''
  const debug = (text: string): void => void context.stderr.write(`[Debug] ${text}\n`)
  debug('Cleared global flags for plugin completion')
  const plugins = await pluginWords(path)
  let depth = 0
  while (depth < args.length && wordsBehind(plugins, args.slice(0, depth), []).includes(args[depth] as string)) depth++
  if (depth === 0) return undefined
  const words = args.slice(0, depth)
  const rest = args.slice(depth)
  const below = rest.length > 0 ? [] : wordsBehind(plugins, words, []).filter((word) => word.startsWith(typed))
  const name = ['kubectl_complete', ...words.map((word) => word.replaceAll('-', '_'))].join('-')
  debug(`About to look for: ${name}`)
  const program = await findProgram(name, path)
  if (program === undefined) {
    debug(`Plugin ${name.replace('_complete', '')} does not provide a matching completion executable`)
  } else debug(`About to call: ${program} ${[...rest, typed].join(' ')}`)
  const answer =
    program === undefined ? { choices: [], directive: DEFAULT } : await ask(program, [...rest, typed], context)
  return { choices: [...below.map(describedPlugin), ...answer.choices], directive: answer.directive }
}

/** The program prints choices; a last line such as `:4` is the directive. */
async function ask(program: string, args: readonly string[], { env, cwd }: PluginContext): Promise<Answer> {
  const output = await new Promise<string>((resolve) => {
    execFile(program, [...args], { env: { ...env }, cwd, maxBuffer: MAX_BYTES }, (error, stdout) =>
      resolve(error === null ? stdout : ''),
    )
  })
  const lines = output.split('\n').filter(Boolean)
  const [, directive] = /^:(\d+)$/.exec(lines.at(-1) ?? '') ?? []
  return directive === undefined
    ? { choices: lines, directive: DEFAULT }
    : { choices: lines.slice(0, -1), directive: Number(directive) }
}
