/** Tests SELinux label conflicts on shared volumes, on a complete API server with a virtual clock. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { Events, Namespaces, PersistentVolumeClaims, PersistentVolumes, Pods } from '#apis/core/v1.ts'
import { CSIDrivers } from '#apis/storage/v1.ts'
import { persistentVolumeBinderController } from '#controllers/volumes/persistentvolume-binder/controller.ts'
import { labelsConflict, seLinuxWarningController } from '#controllers/volumes/selinux-warning.ts'
import { startControllers } from '#kits/controllers/start.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { startControlPlane } from '#testing/control-plane.ts'

const namespace = 'storage'

interface Mounting {
  readonly level?: string
  readonly policy?: string
  /** Of a second container. */
  readonly second?: string
}

/** The events about pods that mount the same volume, one after the other. */
async function told(pods: Readonly<Record<string, Mounting>>, seLinuxMount = true): Promise<string[]> {
  const clock = createVirtualClock(Date.UTC(2026, 0, 1))
  await using plane = await startControlPlane({ clock, settings: { 'disable-admission-plugins': ['ServiceAccount'] } })
  await using controllers = startControllers(plane, clock, [persistentVolumeBinderController, seLinuxWarningController])
  const { client } = controllers
  await client.create(Namespaces, { metadata: { name: namespace } })
  await client.create(CSIDrivers, { metadata: { name: 'd' }, spec: { seLinuxMount } })
  const accessModes = ['ReadWriteMany']
  const csi = { driver: 'd', volumeHandle: 'h' }
  const volume = { accessModes, capacity: { storage: '1Gi' }, persistentVolumeReclaimPolicy: 'Retain', csi }
  await client.create(PersistentVolumes, { metadata: { name: 'v' }, spec: volume })
  await clock.advance(100)
  const claim = { accessModes, resources: { requests: { storage: '1Gi' } } }
  await client.create(PersistentVolumeClaims, { metadata: { namespace, name: 'c' }, spec: claim })
  await clock.advance(500)
  for (const [name, { level, policy, second }] of Object.entries(pods)) {
    const container = (title: string, own: string | undefined): object => ({
      name: title,
      image: 'i',
      resources: {},
      volumeMounts: [{ name: 'v', mountPath: '/v' }],
      ...(own !== undefined && { securityContext: { seLinuxOptions: { level: own } } }),
    })
    const containers = [container('a', level), ...(second === undefined ? [] : [container('b', second)])]
    const securityContext = policy === undefined ? {} : { seLinuxChangePolicy: policy }
    const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }]
    await client.create(Pods, {
      metadata: { namespace, name },
      spec: { containers, volumes, securityContext } as never,
    })
    await clock.advance(100)
  }
  const { items } = await client.list(Events, { namespace })
  const mine = items.filter(({ reportingComponent }) => reportingComponent === 'selinux_warning')
  return mine
    .map(({ involvedObject, type, reason, message }) => `${involvedObject.name} ${type} ${reason} ${message}`)
    .toSorted()
}

describe('SELinux warning controller', () => {
  const end = 'If both pods land on the same node, only one of them may access the volume.'
  const uses = 'that uses the same volume as this pod with'

  it('records an event for both pods of a volume if their labels differ', async () => {
    assert.deepEqual(await told({ p: { level: 's0:c1,c2' }, q: { level: 's0:c3,c4' } }), [
      `p Normal SELinuxLabelConflict SELinuxLabel ":::s0:c1,c2" conflicts with pod q ${uses} SELinuxLabel ":::s0:c3,c4". ${end}`,
      `q Normal SELinuxLabelConflict SELinuxLabel ":::s0:c3,c4" conflicts with pod p ${uses} SELinuxLabel ":::s0:c1,c2". ${end}`,
    ])
  })

  it('records an event for both pods of a volume if only one mounts with a label', async () => {
    const lines = await told({ p: { level: 's0:c1,c2' }, q: { level: 's0:c1,c2', policy: 'Recursive' } })
    const policy = 'SELinuxChangePolicy "MountOption" conflicts with pod q'
    assert.ok(
      lines.includes(`p Normal SELinuxChangePolicyConflict ${policy} ${uses} SELinuxChangePolicy "Recursive". ${end}`),
    )
    assert.equal(lines.length, 4)
  })

  it('records no event with equal labels, or for a driver without SELinux mounts', async () => {
    assert.deepEqual(await told({ p: { level: 's0' }, q: { level: 's0' } }), [])
    assert.deepEqual(await told({ p: { level: 's0' }, q: { level: 's1' } }, false), [])
  })

  it('records an event for containers of one pod with different labels', async () => {
    assert.deepEqual(await told({ p: { level: 's0', second: 's1' } }), [
      'p Warning MultipleSELinuxLabels Volume "v" is mounted twice with different SELinux labels inside this pod',
    ])
  })
})

describe('conflict of SELinux labels', () => {
  it('exists if a component is set in both and differs, and always if the level differs', () => {
    const rows: [string, string, boolean][] = [
      ['u:r:t:s0:c1,c2', ':::s0:c1,c2', false],
      ['u:r:t:s0:c1,c2', ':::s0:c98,c99', true],
      [':::s0:c1,c2', '', true],
      ['u:r:t:s0', 'v:r:t:s0', true],
      ['', '', false],
    ]
    for (const [one, other, expected] of rows) assert.equal(labelsConflict(one, other), expected, `${one} ${other}`)
  })
})
