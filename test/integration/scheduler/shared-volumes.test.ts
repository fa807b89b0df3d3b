/** Tests that scheduler profiles share the volume binder: two pods never get the same volume. */
import assert from 'node:assert/strict'
import { it } from 'node:test'

import { PersistentVolumeClaims, PersistentVolumes } from '#apis/core/v1.ts'
import { StorageClasses } from '#apis/storage/v1.ts'
import { DEFAULT_PROFILE } from '#scheduler/profiles.ts'

import { asking, namespace, startCluster } from './cluster-under-test.ts'

const PROFILES = ['default-scheduler', 'another-scheduler'] as const

it('the scheduler assumes a volume for one pod only, across profiles', async () => {
  await using cluster = await startCluster({ profiles: PROFILES.map((name) => ({ ...DEFAULT_PROFILE, name })) })
  const { client } = cluster
  await client.create(StorageClasses, {
    metadata: { name: 'late' },
    provisioner: 'kubernetes.io/no-provisioner',
    volumeBindingMode: 'WaitForFirstConsumer',
  })
  const accessModes: 'ReadWriteOnce'[] = ['ReadWriteOnce']
  await client.create(PersistentVolumes, {
    metadata: { name: 'only' },
    spec: { accessModes, capacity: { storage: '1Gi' }, storageClassName: 'late', hostPath: { path: '/nowhere' } },
  })
  const value = { status: { phase: 'Available' } }
  await client.patch(PersistentVolumes, { name: 'only', subresource: 'status' }, { type: 'merge', value })
  for (const schedulerName of PROFILES) {
    const resources = { requests: { storage: '1Gi' } }
    const spec = { accessModes, resources, storageClassName: 'late' }
    await client.create(PersistentVolumeClaims, { metadata: { namespace, name: schedulerName }, spec })
    const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: schedulerName } }]
    await cluster.pod(schedulerName, { ...asking({ cpu: '1' }), schedulerName, volumes })
  }
  for (const name of PROFILES) assert.equal(await cluster.whyNot(name), 'no nodes available to schedule pods')
  // Both are thought of at once when there is a node, before anything has been written.
  await cluster.node('n1')
  await cluster.settle(2000)
  const said = await Promise.all(PROFILES.map((name) => cluster.events(name)))
  const without = said.filter((events) =>
    events.some((one) => one.includes("didn't find available persistent volumes to bind")),
  )
  assert.equal(without.length, 1)
  // No pod lost a volume that was assumed for it.
  assert.deepEqual(
    said.flat().filter((one) => one.includes('running PreBind plugin')),
    [],
  )
})
