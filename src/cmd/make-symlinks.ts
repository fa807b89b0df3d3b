/** `hyperkube --make-symlinks`: creates one link for each Kubernetes program name and alias. */
import { readlink, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import type { Command } from '#lib/program.ts'

export interface LinkFailure {
  readonly path: string
  readonly reason: string
}

/**
 * Creates links to `shim` in `folder` and resolves to the names that failed. A correct existing link counts as created;
 * other files are left alone.
 */
export async function makeSymlinks(
  commands: readonly Command[],
  folder: string,
  shim: URL,
  platform: NodeJS.Platform = process.platform,
): Promise<LinkFailure[]> {
  const executable = fileURLToPath(shim)
  const failures: LinkFailure[] = []
  for (const name of commands.flatMap((command) => [command.name, ...(command.aliases ?? [])])) {
    const path = join(folder, platform === 'win32' ? `${name}.cmd` : name)
    try {
      await (platform === 'win32' ? writeCommandFile(path, name, executable) : link(path, executable))
    } catch (error) {
      failures.push({ path, reason: (error as Error).message })
    }
  }
  return failures
}

async function link(path: string, executable: string): Promise<void> {
  try {
    await symlink(executable, path)
  } catch (error) {
    const existing = await readlink(path).catch(() => undefined)
    if (existing !== executable) throw error
  }
}

/**
 * Few Windows users may create symlinks, and a batch file cannot find the target of its link. Windows gets a batch file
 * instead.
 */
function writeCommandFile(path: string, name: string, executable: string): Promise<void> {
  const lines = ['@echo off', 'setlocal', `set "HYPERKUBE_ARGV0=${name}"`, `"${executable}.cmd" %*`, '']
  return writeFile(path, lines.join('\r\n'), { flag: 'wx' })
}
