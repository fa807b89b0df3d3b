/**
 * Cgroups of the systemd driver: systemd creates slices, and limits are their properties. Cgroup files are written as
 * well, because properties do not cover every limit.
 */
import { basename, dirname } from 'node:path'

import { DbusConnection, DbusError } from '#lib/dbus/connection.ts'
import type { DbusValue } from '#lib/dbus/message.ts'

import type { SliceProperty } from './cgroup-files.ts'
import type { CgroupTree } from './cgroup-tree.ts'

export interface SliceManager {
  /** Does nothing if the slice exists. `parent` is its parent slice. */
  start(unit: string, parent: string): Promise<void>
  set(unit: string, properties: readonly SliceProperty[]): Promise<void>
  /** Ignores a missing slice. */
  stop(unit: string): Promise<void>
}

const SUFFIX = '.slice'

/** `files` is the tree in which systemd creates the slices. */
export function slices(files: CgroupTree, manager: SliceManager): CgroupTree {
  const isThere = async (path: string): Promise<boolean> =>
    (await files.namesBelow(dirname(path))).includes(basename(path))
  return {
    ...files,
    async make(path) {
      const units = path.split('/').filter((part) => part !== '')
      // Parents are created explicitly, because implicit ones have no accounting.
      for (const [at, unit] of units.entries()) {
        const isMade = await isThere(`/${units.slice(0, at + 1).join('/')}`)
        if (!isMade) await manager.start(unit, units[at - 1] ?? '-.slice')
      }
      await files.make(path)
    },
    async write(path, file, isOnlyMore) {
      if (!(await files.differs(path, file, isOnlyMore))) return
      const unit = basename(path)
      if (unit.endsWith(SUFFIX) && file.properties.length > 0) await manager.set(unit, file.properties)
      await files.write(path, file, isOnlyMore)
    },
    async remove(path) {
      // Stopping a slice kills its processes, so it is stopped only when empty.
      await files.remove(path)
      if (!(await isThere(path))) await manager.stop(basename(path))
    },
  }
}

const BUS_PATH = '/run/dbus/system_bus_socket'
const MANAGER = {
  destination: 'org.freedesktop.systemd1',
  path: '/org/freedesktop/systemd1',
  interface: 'org.freedesktop.systemd1.Manager',
} as const
const EXISTS = 'org.freedesktop.systemd1.UnitExists'
const NOT_THERE = 'org.freedesktop.systemd1.NoSuchUnit'
/** Accounting properties, by cgroup version. */
const ACCOUNTING = {
  1: ['CPUAccounting', 'MemoryAccounting', 'BlockIOAccounting', 'TasksAccounting'],
  2: ['CPUAccounting', 'MemoryAccounting', 'IOAccounting', 'TasksAccounting'],
} as const

/** The machine's systemd, connected on first use and again after a disconnect. */
export class Systemd implements SliceManager, Disposable {
  readonly #version: 1 | 2
  readonly #busPath: string
  #bus: Promise<DbusConnection> | undefined

  constructor(version: 1 | 2, busPath: string = BUS_PATH) {
    this.#version = version
    this.#busPath = busPath
  }

  async start(unit: string, parent: string): Promise<void> {
    const properties = [
      text('Description', `libcontainer container ${unit}`),
      ['Wants', { signature: 'as', value: [parent] }],
      flag('DefaultDependencies', false),
      ...ACCOUNTING[this.#version].map((name) => flag(name, true)),
    ]
    try {
      await this.#call('StartTransientUnit', 'ssa(sv)a(sa(sv))', [unit, 'replace', properties, []])
    } catch (error) {
      if (!(error instanceof DbusError && error.errorName === EXISTS)) throw error
      await this.#call('StartUnit', 'ss', [unit, 'replace'])
    }
  }

  async set(unit: string, properties: readonly SliceProperty[]): Promise<void> {
    const values = properties.map(([name, value]) => [name, { signature: 't', value }])
    await this.#call('SetUnitProperties', 'sba(sv)', [unit, true, values])
  }

  async stop(unit: string): Promise<void> {
    await this.#call('StopUnit', 'ss', [unit, 'replace']).catch((error: unknown) => {
      if (!(error instanceof DbusError && error.errorName === NOT_THERE)) throw error
    })
  }

  [Symbol.dispose](): void {
    void this.#bus?.then((bus) => bus.close()).catch(() => undefined)
  }

  async #call(member: string, signature: string, body: readonly DbusValue[]): Promise<void> {
    this.#bus ??= this.#open()
    const bus = await this.#bus
    await bus.call({ ...MANAGER, member, signature, body })
  }

  async #open(): Promise<DbusConnection> {
    const forget = (): void => void (this.#bus = undefined)
    try {
      const bus = await DbusConnection.open(this.#busPath)
      void bus.closed.then(forget)
      return bus
    } catch (error) {
      forget()
      throw error
    }
  }
}

const text = (name: string, value: string): DbusValue => [name, { signature: 's', value }]
const flag = (name: string, value: boolean): DbusValue => [name, { signature: 'b', value }]
