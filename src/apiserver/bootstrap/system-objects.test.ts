import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { Namespaces } from '#apis/core/v1.ts'
import { PriorityClasses } from '#apis/scheduling/v1.ts'

import { createServers } from '../registry/servers.fixture.ts'
import { ensureSystemObjects } from './system-objects.ts'

describe('initial system objects', () => {
  it('are four namespaces and two priority classes', async () => {
    await using servers = createServers()
    const registry = await servers.open([Namespaces, PriorityClasses])
    await ensureSystemObjects(registry)
    const namespaces = await registry.list(Namespaces, '')
    assert.deepEqual(
      namespaces.map(({ metadata }) => metadata.name),
      ['default', 'kube-node-lease', 'kube-public', 'kube-system'],
    )
    const classes = await registry.list(PriorityClasses, '')
    assert.deepEqual(
      classes.map(({ metadata, value, preemptionPolicy }) => [metadata.name, value, preemptionPolicy]),
      [
        ['system-cluster-critical', 2_000_000_000, 'PreemptLowerPriority'],
        ['system-node-critical', 2_000_001_000, 'PreemptLowerPriority'],
      ],
    )
  })

  it('are created once by concurrent servers, and restored at the next start', async () => {
    await using servers = createServers()
    const registries = await Promise.all([1, 2, 3].map(() => servers.open([Namespaces, PriorityClasses])))
    await Promise.all(registries.map((registry) => ensureSystemObjects(registry)))
    const [registry] = registries
    const uids = async (): Promise<unknown[]> =>
      (await registry!.list(Namespaces, '')).map(({ metadata }) => metadata.uid)
    const before = await uids()
    assert.equal(before.length, 4)
    await ensureSystemObjects(registry!)
    assert.deepEqual(await uids(), before)
    await registry!.writer.delete(PriorityClasses, { name: 'system-node-critical' })
    await ensureSystemObjects(registry!)
    assert.equal((await registry!.list(PriorityClasses, '')).length, 2)
  })
})
