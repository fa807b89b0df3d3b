/** Plugins: programs named `kubectl-…` in PATH stand for commands that are not there. */
import { spawn } from 'node:child_process'
import { constants } from 'node:fs'
import { access } from 'node:fs/promises'
import { delimiter, join } from 'node:path'

import type { ProgramContext } from '#lib/program.ts'

import { ExitError } from './errors.ts'

type PluginContext = Pick<ProgramContext, 'args' | 'env' | 'cwd'>

/**
 * Runs the plugin with the longest name that the first words make (`kubectl-a-b` for `a b`) and throws its exit code;
 * returns when there is none.
 */
export async function runPlugin({ args, env, cwd }: PluginContext): Promise<void> {
  const end = args.findIndex((arg) => arg.startsWith('-'))
  const words = args.slice(0, end < 0 ? args.length : end)
  for (let count = words.length; count > 0; count--) {
    const name = `kubectl-${words
      .slice(0, count)
      .map((word) => word.replaceAll('-', '_'))
      .join('-')}`
    const file = await findProgram(name, env['PATH'] ?? '')
    if (file !== undefined) throw new ExitError(await run(file, args.slice(count), { env, cwd }))
  }
}

async function findProgram(name: string, path: string): Promise<string | undefined> {
  for (const folder of path.split(delimiter).filter(Boolean)) {
    const file = join(folder, name)
    const isThere = await access(file, constants.X_OK).then(
      () => true,
      () => false,
    )
    if (isThere) return file
  }
  return undefined
}

function run(file: string, args: readonly string[], { env, cwd }: Pick<PluginContext, 'env' | 'cwd'>): Promise<number> {
  return new Promise((done, fail) => {
    const child = spawn(file, [...args], { env: { ...env }, cwd, stdio: 'inherit' })
    child.once('error', fail)
    child.once('close', (code) => done(code ?? 1))
  })
}
