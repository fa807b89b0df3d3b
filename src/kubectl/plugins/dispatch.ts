/** Dispatches unknown commands to plugins: programs named `kubectl-…` in PATH. */
import { spawn } from 'node:child_process'
import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { constants as os } from 'node:os'
import { delimiter, join } from 'node:path'
import type { Writable } from 'node:stream'

import type { ProgramContext } from '#lib/program.ts'

import { ExitError } from '../errors.ts'

type PluginContext = Pick<ProgramContext, 'args' | 'env' | 'cwd' | 'stdout' | 'stderr'>

/** Built-in commands that plugins may extend: `kubectl-create-foo`. */
const EXTENDED: ReadonlySet<string> = new Set(['create'])

/** True if a plugin may provide an unknown subcommand of this command. */
export function mayBeExtended(command: string): boolean {
  return EXTENDED.has(command)
}

/**
 * Runs the plugin with the longest matching name (`kubectl-a-b` for `a b`) of at least `atLeast` words. Throws its exit
 * code; returns if there is none.
 */
export async function runPlugin(context: PluginContext, atLeast = 1): Promise<void> {
  const { args, env } = context
  const end = args.findIndex((arg) => arg.startsWith('-'))
  const words = args.slice(0, end < 0 ? args.length : end)
  if (words.length === 0) throw new ExitError(1, `Error: flags cannot be placed before plugin name: ${args[0] ?? ''}`)
  for (let count = words.length; count >= atLeast; count--) {
    const name = ['kubectl', ...words.slice(0, count).map((word) => word.replaceAll('-', '_'))].join('-')
    const file = await findProgram(name, env['PATH'] ?? '')
    if (file !== undefined) throw new ExitError(await runInherited(file, args.slice(count), context))
  }
}

/** The first executable in PATH. */
export async function findProgram(name: string, path: string): Promise<string | undefined> {
  for (const folder of path.split(delimiter).filter(Boolean)) {
    const file = join(folder, name)
    const isProgram = await Promise.all([access(file, constants.X_OK), stat(file)]).then(
      ([, found]) => found.isFile(),
      () => false,
    )
    if (isProgram) return file
  }
  return undefined
}

/** Runs a program with the streams of this one, and resolves to its exit code. */
export function runInherited(
  file: string,
  args: readonly string[],
  { env, cwd, stdout, stderr }: Omit<PluginContext, 'args'>,
): Promise<number> {
  return new Promise((done, fail) => {
    const child = spawn(file, [...args], { env: { ...env }, cwd, stdio: ['inherit', outlet(stdout), outlet(stderr)] })
    child.stdout?.on('data', (chunk: Buffer) => stdout.write(chunk))
    child.stderr?.on('data', (chunk: Buffer) => stderr.write(chunk))
    child.once('error', fail)
    child.once('close', (code, signal) => done(code ?? 128 + (signal === null ? 0 : os.signals[signal])))
  })
}

/** The plugin inherits terminals and files; other streams are piped. */
function outlet(stream: Writable): number | 'pipe' {
  return (stream as { readonly fd?: number }).fd ?? 'pipe'
}
