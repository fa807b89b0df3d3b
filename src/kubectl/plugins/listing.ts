/** Lists the kubectl plugins in PATH, with a warning for each problem. */
import { readdir, stat } from 'node:fs/promises'
import { basename, delimiter, join } from 'node:path'

import { goQuote } from '#lib/go/text.ts'

import type { CommandRow } from '../command.ts'
import { goFileError } from '../printing.ts'

const PREFIX = 'kubectl-'

/** Paths of all files with plugin names, sorted within each folder. `skipped` receives unreadable folders. */
export async function listPlugins(path: string, skipped: (text: string) => void = () => undefined): Promise<string[]> {
  const plugins: string[] = []
  for (const folder of new Set(path.split(delimiter))) {
    if (folder.trim() === '') continue
    try {
      const entries = await readdir(folder, { withFileTypes: true })
      const names = entries.filter((entry) => !entry.isDirectory()).map(({ name }) => name)
      plugins.push(
        ...names
          .filter((name) => name.startsWith(PREFIX))
          .sort()
          .map((name) => join(folder, name)),
      )
    } catch (error) {
      const why = goFileError(folder, error as NodeJS.ErrnoException)
      skipped(`Unable to read directory ${goQuote(folder)} from your PATH: ${why}. Skipping...\n`)
    }
  }
  return plugins
}

/** Checks plugins in the order of PATH. */
export class PluginVerifier {
  readonly #commands: readonly CommandRow[]
  readonly #seen = new Map<string, string>()

  constructor(commands: readonly CommandRow[]) {
    this.#commands = commands
  }

  /** The problems of one plugin; empty without any. */
  async problemsOf(path: string): Promise<string[]> {
    const name = basename(path)
    const problems = await executableProblems(path)
    const earlier = this.#seen.get(name)
    if (earlier === undefined) this.#seen.set(name, path)
    else problems.push(`warning: ${path} is overshadowed by a similarly named plugin: ${earlier}`)
    const command = await commandAt(this.#commands, name.split('-').slice(1))
    if (command !== undefined) problems.push(`warning: ${name} overwrites existing command: ${goQuote(command)}`)
    return problems
  }
}

async function executableProblems(path: string): Promise<string[]> {
  try {
    const found = await stat(path)
    const isExecutable = !found.isDirectory() && (found.mode & 0o111) !== 0
    return isExecutable ? [] : [`warning: ${path} identified as a kubectl plugin, but it is not executable`]
  } catch (error) {
    const why = goFileError(path, error as NodeJS.ErrnoException).replace(/^open /, 'stat ')
    return [`error: unable to identify ${path} as an executable file: ${why}`]
  }
}

/** The built-in command that the words name, as far as they match: `kubectl config view`. */
async function commandAt(commands: readonly CommandRow[], words: readonly string[]): Promise<string | undefined> {
  let rows = commands
  const path = ['kubectl']
  for (const word of words) {
    const row = rows.find(({ name, aliases = [] }) => name === word || aliases.includes(word))
    if (row === undefined) break
    path.push(row.name)
    rows = (await row.load()).commands ?? []
  }
  return path.length === 1 ? undefined : path.join(' ')
}

/** First words of plugins that are no built-in commands. */
export async function pluginCommands(path: string, commands: readonly CommandRow[]): Promise<string[]> {
  const words = (await listPlugins(path)).map((file) => (basename(file).split('-')[1] ?? '').replaceAll('_', '-'))
  return words.filter((word) => !commands.some(({ name, aliases = [] }) => name === word || aliases.includes(word)))
}
