/** The steps that install and remove the supervisor as a systemd service. */
import { lstat, mkdir, readlink, rm, symlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import type { Host } from '../host.ts'
import { PROCESS_NAMES } from '../process-names.ts'
import type { Step } from '../steps.ts'
import { environmentText, UNIT, type UnitPlan, unitText } from './unit.ts'

export interface Installation {
  readonly host: Host
  /** `/` except for nodes that share a machine. */
  readonly root: string
  /** The program that contains all programs. */
  readonly executable: string
  readonly command: readonly string[]
  /** The settings of an agent in a file, hidden from process lists. */
  readonly variables: Readonly<Record<string, string>>
  readonly startsNow: boolean
}

export function environmentFile(root: string): string {
  return join(root, '/etc/kubernetes/node-service.env')
}

export function unitFile(root: string): string {
  return join(root, '/etc/systemd/system', UNIT)
}

/** The output of systemctl. Rejects if it fails. */
function systemctl({ host }: Pick<Installation, 'host'>, ...args: readonly string[]): Promise<string> {
  return host.processes.output('systemctl', args)
}

/** True if systemctl succeeds. */
function systemctlSucceeds(installation: Installation, ...args: readonly string[]): Promise<boolean> {
  return systemctl(installation, ...args).then(
    () => true,
    () => false,
  )
}

function unitPlan({ root, command }: Installation): UnitPlan {
  return { command, environmentFile: environmentFile(root) }
}

export const INSTALLATION: readonly Step<Installation>[] = [
  {
    name: 'programs',
    isDone: async ({ host, executable }) => {
      const targets = await Promise.all(PROCESS_NAMES.map((name) => linkTarget(host.layout.program(name))))
      return targets.every((target) => target === executable || target === 'file')
    },
    async take({ host, executable }) {
      for (const name of PROCESS_NAMES) await link(host.layout.program(name), executable)
    },
    async undo({ host, executable }) {
      for (const name of PROCESS_NAMES) {
        const path = host.layout.program(name)
        if ((await linkTarget(path)) === executable) await rm(path)
      }
    },
  },
  {
    name: 'settings of the agent',
    isDone: async ({ host, root, variables }) =>
      ((await host.files.read(environmentFile(root))) ?? '') === environmentText(variables),
    take: ({ host, root, variables }) => host.files.write(environmentFile(root), environmentText(variables)),
    undo: ({ host, root }) => host.files.remove(environmentFile(root)),
  },
  {
    name: 'the unit',
    isDone: async (installation) =>
      (await installation.host.files.read(unitFile(installation.root))) === unitText(unitPlan(installation)),
    async take(installation) {
      await installation.host.files.write(unitFile(installation.root), unitText(unitPlan(installation)))
      await systemctl(installation, 'daemon-reload')
      // A running service still uses the previous unit.
      await systemctl(installation, 'try-restart', UNIT)
    },
    async undo(installation) {
      await installation.host.files.remove(unitFile(installation.root))
      await systemctl(installation, 'daemon-reload')
    },
  },
  {
    name: 'start at boot',
    isDone: (installation) => systemctlSucceeds(installation, 'is-enabled', '--quiet', UNIT),
    take: async (installation) => void (await systemctl(installation, 'enable', UNIT)),
    async undo(installation) {
      if (await systemctlSucceeds(installation, 'is-enabled', '--quiet', UNIT))
        await systemctl(installation, 'disable', UNIT)
    },
  },
  {
    name: 'start now',
    isDone: async (installation) =>
      !installation.startsNow || (await systemctlSucceeds(installation, 'is-active', '--quiet', UNIT)),
    take: async (installation) => void (await systemctl(installation, 'start', UNIT)),
    undo: stopAll,
  },
]

/** Stops the supervisor first, because it would restart the others. */
export async function stopAll(installation: Pick<Installation, 'host' | 'root'>): Promise<void> {
  const { host, root } = installation
  if (await host.files.exists(unitFile(root))) await systemctl(installation, 'stop', UNIT)
  for (const name of PROCESS_NAMES.toReversed()) await host.processes.kill(name)
}

export async function startAll(installation: Pick<Installation, 'host'>): Promise<void> {
  await systemctl(installation, 'start', UNIT)
}

/** The target of a link; `file` for another file; undefined if nothing exists. */
async function linkTarget(path: string): Promise<string | undefined> {
  const found = await lstat(path).catch(() => undefined)
  if (found === undefined) return undefined
  return found.isSymbolicLink() ? readlink(path) : 'file'
}

/** A program that a user put there stays. */
async function link(path: string, executable: string): Promise<void> {
  const target = await linkTarget(path)
  if (target === executable || target === 'file') return
  await rm(path, { force: true })
  await mkdir(dirname(path), { recursive: true, mode: 0o755 })
  await symlink(executable, path)
}
