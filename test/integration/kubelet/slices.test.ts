import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import { Systemd } from '#kubelet/cgroups/systemd-slices.ts'
import { DbusConnection } from '#lib/dbus/connection.ts'
import { type DbusMessage, type DbusValue, MESSAGE } from '#lib/dbus/message.ts'

import { startBus, whyNoBus } from './message-bus.ts'

const NAME = 'org.freedesktop.systemd1'

const plain = (value: DbusValue): unknown => {
  if (Array.isArray(value)) return value.map(plain)
  return typeof value === 'object' && 'signature' in value ? plain(value.value) : value
}

/** A fake systemd that already has one slice and does not know another. */
async function standIn(path: string): Promise<{ readonly told: unknown[][]; close(): void }> {
  const bus = await DbusConnection.open(path)
  await bus.ownName(NAME)
  const told: unknown[][] = []
  const refusals: Record<string, string> = {
    'StartTransientUnit old.slice': 'UnitExists',
    'StopUnit gone.slice': 'NoSuchUnit',
    'StopUnit odd.slice': 'LoadFailed',
  }
  bus.onMessage = ({ type, member = '', serial, sender = '', body }: DbusMessage) => {
    if (type !== MESSAGE.call) return
    told.push([member, ...body.map(plain)])
    const [unit] = body
    const refusal = typeof unit === 'string' ? refusals[`${member} ${unit}`] : undefined
    const answer = { answers: serial, destination: sender, signature: 's' }
    if (refusal === undefined) bus.tell({ ...answer, type: MESSAGE.answer, body: ['/job'] })
    else bus.tell({ ...answer, type: MESSAGE.error, errorName: `${NAME}.${refusal}`, body: [`it is ${refusal}`] })
  }
  return { told, close: () => bus.close() }
}

test('systemd slices are started, configured and stopped over the system bus', { skip: whyNoBus }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'slices-bus-'))
  t.after(() => rm(folder, { recursive: true }))
  const { path } = await startBus(t, folder)
  const systemd = await standIn(path)
  t.after(() => systemd.close())
  using ours = new Systemd(2, path)
  await ours.start('kubepods.slice', '-.slice')
  await ours.start('old.slice', '-.slice')
  await ours.set('kubepods.slice', [['MemoryMax', 2n ** 64n - 1n]])
  await ours.stop('kubepods.slice')
  await ours.stop('gone.slice')
  await assert.rejects(ours.stop('odd.slice'), { message: 'it is LoadFailed' })
  const properties = (unit: string): unknown[] => [
    ['Description', `libcontainer container ${unit}`],
    ['Wants', ['-.slice']],
    ['DefaultDependencies', false],
    ...['CPUAccounting', 'MemoryAccounting', 'IOAccounting', 'TasksAccounting'].map((name) => [name, true]),
  ]
  assert.deepEqual(systemd.told, [
    ['StartTransientUnit', 'kubepods.slice', 'replace', properties('kubepods.slice'), []],
    ['StartTransientUnit', 'old.slice', 'replace', properties('old.slice'), []],
    ['StartUnit', 'old.slice', 'replace'],
    ['SetUnitProperties', 'kubepods.slice', true, [['MemoryMax', 2n ** 64n - 1n]]],
    ['StopUnit', 'kubepods.slice', 'replace'],
    ['StopUnit', 'gone.slice', 'replace'],
    ['StopUnit', 'odd.slice', 'replace'],
  ])
})

test('systemd calls fail without a bus, and the next call connects again', { skip: whyNoBus }, async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'slices-bus-'))
  t.after(() => rm(folder, { recursive: true }))
  using ours = new Systemd(2, join(folder, 'bus'))
  await assert.rejects(ours.stop('a.slice'), /ENOENT/)
  const { path } = await startBus(t, folder)
  const systemd = await standIn(path)
  t.after(() => systemd.close())
  await ours.stop('a.slice')
})
