import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'

import { eventually } from '#kits/lib/eventually.ts'
import { logind } from '#kubelet/shutdown/logind.ts'
import { realClock } from '#lib/clock.ts'
import { DbusConnection } from '#lib/dbus/connection.ts'
import { type DbusMessage, MESSAGE } from '#lib/dbus/message.ts'

import { startBus, whyNoBus as why } from './message-bus.ts'

interface StandIn {
  readonly told: string[]
  tellShutdown(isShuttingDown: boolean): void
  close(): void
}

const LOGIN = 'org.freedesktop.login1'

/** Fakes systemd and logind, whose maximum delay is 5 seconds unless the override raises it. */
async function standIn(path: string, overridePath: string): Promise<StandIn> {
  const bus = await DbusConnection.open(path)
  await bus.ownName(LOGIN)
  await bus.ownName('org.freedesktop.systemd1')
  const told: string[] = []
  let seconds = 5
  const answer = ({ serial, sender = '' }: DbusMessage, body: Pick<DbusMessage, 'signature' | 'body'>): void =>
    bus.tell({ type: MESSAGE.answer, answers: serial, destination: sender, ...body })
  bus.onMessage = (message) => {
    if (message.type !== MESSAGE.call) return
    told.push(
      `${message.interface}.${message.member} ${message.body.map((each) => (typeof each === 'object' ? '?' : each)).join(' ')}`,
    )
    if (message.member === 'Get') {
      const value = { signature: 't', value: BigInt(seconds) * 1_000_000n }
      return answer(message, { signature: 'v', body: [value] })
    }
    if (message.member === 'Inhibit') {
      return bus.tell({
        type: MESSAGE.error,
        answers: message.serial,
        destination: message.sender ?? '',
        errorName: 'org.freedesktop.DBus.Error.AccessDenied',
        signature: 's',
        body: ['no descriptors here'],
      })
    }
    // SIGHUP reloads the configuration.
    seconds = Number(/^InhibitDelayMaxSec=(\d+)$/m.exec(readFileSync(overridePath, 'utf8'))?.[1])
    answer(message, { body: [] })
  }
  return {
    told,
    tellShutdown: (isShuttingDown) =>
      bus.tell({
        type: MESSAGE.signal,
        path: '/org/freedesktop/login1',
        interface: `${LOGIN}.Manager`,
        member: 'PrepareForShutdown',
        signature: 'b',
        body: [isShuttingDown],
      }),
    close: () => bus.close(),
  }
}

async function folderOf(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-shutdown-'))
  t.after(() => rm(folder, { recursive: true }))
  return folder
}

test(
  'the shutdown manager sets a longer logind delay, takes a lock, and notices a shutdown',
  { skip: why },
  async (t) => {
    const folder = await folderOf(t)
    const { path, daemon } = await startBus(t, folder)
    const overridePath = join(folder, 'logind.conf.d', '99-kubelet.conf')
    const login = await standIn(path, overridePath)
    t.after(() => login.close())
    const heard: boolean[] = []
    const source = logind({ clock: realClock, busPath: path, inhibit: ['cat'], overridePath })
    const watch = await source.watch(30, (isShuttingDown) => void heard.push(isShuttingDown))
    assert.deepEqual(login.told, [
      'org.freedesktop.DBus.Properties.Get org.freedesktop.login1.Manager InhibitDelayMaxUSec',
      'org.freedesktop.systemd1.Manager.KillUnit systemd-logind.service all 1',
      'org.freedesktop.DBus.Properties.Get org.freedesktop.login1.Manager InhibitDelayMaxUSec',
    ])
    assert.equal(await readFile(overridePath, 'utf8'), '# Kubelet logind override\n[Login]\nInhibitDelayMaxSec=30\n')
    const lock = await watch.lock()
    login.tellShutdown(true)
    login.tellShutdown(false)
    await eventually(
      () => heard.length,
      (count) => count === 2,
    )
    assert.deepEqual(heard, [true, false])
    await lock.release()
    daemon.kill('SIGKILL')
    await watch.closed
  },
)

test('the shutdown manager reports why a lock failed', { skip: why }, async (t) => {
  const folder = await folderOf(t)
  const { path } = await startBus(t, folder)
  const login = await standIn(path, join(folder, 'none'))
  t.after(() => login.close())
  const inhibit = ['ls', join(folder, 'nothing')]
  const watch = await logind({ clock: realClock, busPath: path, inhibit }).watch(5, () => undefined)
  await assert.rejects(watch.lock(), /^Error: failed creating systemd inhibitor: ls: cannot access/)
  const missing = await logind({ clock: realClock, busPath: path, inhibit: ['/no/such/program'] }).watch(
    5,
    () => undefined,
  )
  await assert.rejects(missing.lock(), /failed creating systemd inhibitor: spawn \/no\/such\/program ENOENT/)
  watch.close()
  missing.close()
})

test('the shutdown manager reports a missing message bus', async () => {
  await assert.rejects(
    logind({ clock: realClock, busPath: '/no/such/bus' }).watch(5, () => undefined),
    /ENOENT/,
  )
})

test('systemd-inhibit accepts the arguments of the shutdown manager', { skip: systemdFault() }, async (t) => {
  const folder = await folderOf(t)
  const { path } = await startBus(t, folder)
  const login = await standIn(path, join(folder, 'none'))
  t.after(() => login.close())
  // It uses the given bus; ours cannot pass a file descriptor.
  const before = process.env['DBUS_SYSTEM_BUS_ADDRESS']
  process.env['DBUS_SYSTEM_BUS_ADDRESS'] = `unix:path=${path}`
  t.after(() => {
    if (before === undefined) delete process.env['DBUS_SYSTEM_BUS_ADDRESS']
    else process.env['DBUS_SYSTEM_BUS_ADDRESS'] = before
  })
  const watch = await logind({ clock: realClock, busPath: path }).watch(5, () => undefined)
  t.after(() => watch.close())
  await assert.rejects(watch.lock(), /failed creating systemd inhibitor: Failed to inhibit: Access denied/)
  assert.equal(
    login.told.at(-1),
    'org.freedesktop.login1.Manager.Inhibit shutdown kubelet Kubelet needs time to handle node shutdown delay',
  )
})

function systemdFault(): string | undefined {
  if (why !== undefined) return why
  try {
    execFileSync('systemd-inhibit', ['--version'], { stdio: 'ignore' })
    return undefined
  } catch {
    return 'there is no systemd-inhibit here'
  }
}
