/**
 * Receives shutdown signals of systemd-logind and delays the shutdown with an inhibitor lock. `systemd-inhibit` owns
 * the lock while its stdin is open, so a killed kubelet releases it.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'

import { type Clock, sleep } from '#lib/clock.ts'
import { DbusConnection } from '#lib/dbus/connection.ts'
import { MESSAGE, type Variant } from '#lib/dbus/message.ts'

import type { ShutdownLock, ShutdownSource, ShutdownWatch } from './shutdown-manager.ts'

export interface LogindOptions {
  readonly clock: Clock
  /** Socket of the system bus. */
  readonly busPath?: string
  /** A command that has a lock while its stdin is open. Default: systemd-inhibit. */
  readonly inhibit?: readonly string[]
  /** Drop-in file that raises logind's maximum delay. */
  readonly overridePath?: string
}

const BUS_PATH = '/run/dbus/system_bus_socket'
const OVERRIDE_PATH = '/etc/systemd/logind.conf.d/99-kubelet.conf'
const INHIBIT = [
  'systemd-inhibit',
  '--what=shutdown',
  '--who=kubelet',
  '--why=Kubelet needs time to handle node shutdown',
  '--mode=delay',
  'cat',
]
const LOGIN = {
  destination: 'org.freedesktop.login1',
  path: '/org/freedesktop/login1',
  interface: 'org.freedesktop.login1.Manager',
} as const
const SYSTEMD = {
  destination: 'org.freedesktop.systemd1',
  path: '/org/freedesktop/systemd1',
  interface: 'org.freedesktop.systemd1.Manager',
} as const
/** Delays between checks whether logind has reloaded its configuration. */
const RELOAD_DELAYS_MS = [100, 200, 400, 800]
const SIGHUP = 1

export function logind(options: LogindOptions): ShutdownSource {
  return {
    async watch(wantedSeconds, changed) {
      const bus = await DbusConnection.open(options.busPath ?? BUS_PATH)
      try {
        return await watchOver(bus, options, wantedSeconds, changed)
      } catch (error) {
        bus.close()
        throw error
      }
    },
  }
}

async function watchOver(
  bus: DbusConnection,
  options: LogindOptions,
  wantedSeconds: number,
  changed: (isShuttingDown: boolean) => void,
): Promise<ShutdownWatch> {
  await allow(bus, options, wantedSeconds)
  bus.onMessage = ({ type, member, interface: of, body: [isShuttingDown] }) => {
    if (type !== MESSAGE.signal || member !== 'PrepareForShutdown' || of !== LOGIN.interface) return
    if (typeof isShuttingDown === 'boolean') changed(isShuttingDown)
  }
  await bus.match(`type='signal',interface='${LOGIN.interface}',member='PrepareForShutdown',path='${LOGIN.path}'`)
  return { closed: bus.closed, lock: () => lock(options.inhibit ?? INHIBIT), close: () => bus.close() }
}

/** Raises logind's maximum inhibitor delay to at least `wantedSeconds`. */
async function allow(bus: DbusConnection, options: LogindOptions, wantedSeconds: number): Promise<void> {
  let allowed = await allowedSeconds(bus)
  if (allowed >= wantedSeconds) return
  const path = options.overridePath ?? OVERRIDE_PATH
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o755 })
    await writeFile(path, `# Kubelet logind override\n[Login]\nInhibitDelayMaxSec=${wantedSeconds}\n`, { mode: 0o644 })
  } catch (cause) {
    const why = `failed writing logind shutdown inhibit override file ${path}: ${(cause as Error).message}`
    throw new Error(`unable to override inhibit delay by shutdown manager: ${why}`, { cause })
  }
  const body = ['systemd-logind.service', 'all', SIGHUP]
  await bus.call({ ...SYSTEMD, member: 'KillUnit', signature: 'ssi', body }).catch((cause: Error) => {
    throw new Error(`unable to reload logind conf: ${cause.message}`, { cause })
  })
  let tries = 0
  for (const delayMs of [0, ...RELOAD_DELAYS_MS]) {
    tries++
    await sleep(options.clock, delayMs)
    allowed = await allowedSeconds(bus)
    if (allowed >= wantedSeconds) return
  }
  throw new Error(
    `node shutdown manager was timed out after ${tries} attempts waiting for logind InhibitDelayMaxSec to update to ${wantedSeconds}s (ShutdownGracePeriod), current value is ${allowed}s`,
  )
}

async function allowedSeconds(bus: DbusConnection): Promise<number> {
  const property = [LOGIN.interface, 'InhibitDelayMaxUSec']
  const properties = 'org.freedesktop.DBus.Properties'
  const [found] = await bus
    .call({ ...LOGIN, interface: properties, member: 'Get', signature: 'ss', body: property })
    .catch((cause: Error) => {
      throw new Error(`failed reading InhibitDelayMaxUSec property from logind: ${cause.message}`, { cause })
    })
  return Number((found as Variant).value) / 1_000_000
}

/** Resolves when the lock is taken. Otherwise the program's stderr is the reason. */
async function lock([command = '', ...args]: readonly string[]): Promise<ShutdownLock> {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'] })
  // Writing to a child that has exited must not throw.
  child.stdin.on('error', () => undefined)
  let complaint = ''
  child.stderr.on('data', (bytes: Buffer) => void (complaint += bytes))
  // The child of systemd-inhibit (cat) starts once the lock is taken, and echoes its input.
  child.stdin.write('held\n')
  const isLocked = await Promise.race([
    once(child.stdout, 'data').then(() => true),
    once(child, 'close').then(
      () => false,
      (error: Error) => ((complaint = error.message), false),
    ),
  ])
  if (!isLocked) throw new Error(`failed creating systemd inhibitor: ${complaint.trim()}`)
  child.unref()
  return { release: () => ended(child) }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.ref()
  const closed = once(child, 'close')
  child.stdin?.end()
  await closed
}
