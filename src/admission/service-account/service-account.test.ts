import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import type { Pod } from '#apis/core/v1.ts'
import { admit, refusal, refusalStatus, run, sampleWrite, type World } from '#kits/admission/sample-write.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'

import { createServiceAccountPlugin } from './service-account.ts'

const clock = createVirtualClock()
const plugin = createServiceAccountPlugin({ clock, random: createSeededRandom(1) })

function accounts(...found: object[]): World {
  return { serviceaccounts: found }
}

const standard = { metadata: { name: 'default' } }

function pod(spec: object = {}, metadata: object = {}): object {
  return { metadata: { name: 'p', ...metadata }, spec: { containers: [{ name: 'c', resources: {} }], ...spec } }
}

describe('ServiceAccount', () => {
  it('sets the default account and mounts its token, the CA and the namespace', async () => {
    const { spec } = (await admit(plugin, { resource: 'pods', object: pod(), world: accounts(standard) })) as Pod
    assert.equal(spec.serviceAccountName, 'default')
    assert.equal(spec.serviceAccount, 'default')
    const name = spec.volumes![0]!.name
    assert.match(name, /^kube-api-access-[bcdfghjklmnpqrstvwxz2456789]{5}$/)
    assert.deepEqual(spec.volumes, [
      {
        name,
        projected: {
          sources: [
            { serviceAccountToken: { expirationSeconds: 3607, path: 'token' } },
            { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
            {
              downwardAPI: {
                items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }],
              },
            },
          ],
          defaultMode: 420,
        },
      },
    ])
    assert.deepEqual(spec.containers[0]!.volumeMounts, [
      { name, readOnly: true, mountPath: '/var/run/secrets/kubernetes.io/serviceaccount' },
    ])
  })

  it('mounts no token if the pod, or else the account, disables that', async () => {
    const silent = { metadata: { name: 'default' }, automountServiceAccountToken: false }
    for (const [spec, account, volumes] of [
      [{ automountServiceAccountToken: false }, standard, 0],
      [{}, silent, 0],
      [{ automountServiceAccountToken: true }, silent, 1],
    ] as const) {
      const admitted = (await admit(plugin, { resource: 'pods', object: pod(spec), world: accounts(account) })) as Pod
      assert.equal(admitted.spec.volumes?.length ?? 0, volumes)
    }
  })

  it("keeps an existing mount at the token's path and reuses an existing volume", async () => {
    const mounts = [{ name: 'own', mountPath: '/var/run/secrets/kubernetes.io/serviceaccount' }]
    const object = pod({ containers: [{ name: 'c', resources: {}, volumeMounts: mounts }] })
    const kept = (await admit(plugin, { resource: 'pods', object, world: accounts(standard) })) as Pod
    assert.equal(kept.spec.volumes, undefined)
    const there = pod({ volumes: [{ name: 'kube-api-access-abcde', emptyDir: {} }] })
    const used = (await admit(plugin, { resource: 'pods', object: there, world: accounts(standard) })) as Pod
    assert.equal(used.spec.volumes!.length, 1)
    assert.equal(used.spec.containers[0]!.volumeMounts![0]!.name, 'kube-api-access-abcde')
  })

  it("adds the account's imagePullSecrets to a pod that has none", async () => {
    const account = { metadata: { name: 'default' }, imagePullSecrets: [{ name: 'a' }, { name: 'b' }] }
    const added = (await admit(plugin, { resource: 'pods', object: pod(), world: accounts(account) })) as Pod
    assert.deepEqual(added.spec.imagePullSecrets, [{ name: 'a' }, { name: 'b' }])
    const object = pod({ imagePullSecrets: [{ name: 'own' }] })
    const own = (await admit(plugin, { resource: 'pods', object, world: accounts(account) })) as Pod
    assert.deepEqual(own.spec.imagePullSecrets, [{ name: 'own' }])
  })

  it('rejects a pod with a missing service account, with its generateName prefix in the error', async () => {
    const object = pod({ serviceAccountName: 'x' }, { name: 'web-abcde', generateName: 'web-' })
    assert.equal(
      await refusal(plugin, { resource: 'pods', object }),
      'pods "web-" is forbidden: error looking up service account ns/x: serviceaccount "x" not found',
    )
  })

  it('waits a while for the default account of a new namespace', async () => {
    const found: object[] = []
    const { attributes } = sampleWrite({ resource: 'pods', object: pod(), world: { serviceaccounts: found } })
    const admitted = run(plugin, attributes)
    await clock.advance(300)
    found.push(standard)
    await clock.advance(300)
    await admitted
    assert.equal((attributes.object as Pod).spec.volumes!.length, 1)

    const failed = refusal(plugin, { resource: 'pods', object: pod() })
    await clock.advance(5000)
    assert.match(
      (await failed) ?? '',
      /error looking up service account ns\/default: serviceaccount "default" not found/,
    )
  })

  const mirror = { annotations: { 'kubernetes.io/config.mirror': 'x' } }
  const mirrors: readonly [what: string, spec: object, message: string | undefined][] = [
    ['no references', {}, undefined],
    ['a service account', { serviceAccountName: 'a' }, 'a mirror pod may not reference service accounts'],
    ['a pull secret', { imagePullSecrets: [{ name: 's' }] }, 'a mirror pod may not reference secrets'],
    [
      'a token',
      { volumes: [{ name: 'v', projected: { sources: [{ serviceAccountToken: { path: 't' } }] } }] },
      'a mirror pod may not use ServiceAccountToken volume projections',
    ],
  ]
  for (const [what, spec, message] of mirrors) {
    it(`${message === undefined ? 'admits' : 'rejects'} an unchanged mirror pod with ${what}`, async () => {
      const expected = message === undefined ? undefined : `pods "p" is forbidden: ${message}`
      assert.equal(await refusal(plugin, { resource: 'pods', object: pod(spec, mirror) }), expected)
      if (message === undefined) {
        assert.deepEqual(await admit(plugin, { resource: 'pods', object: pod(spec, mirror) }), pod(spec, mirror))
      }
    })
  }

  const strict = {
    metadata: { name: 'default', annotations: { 'kubernetes.io/enforce-mountable-secrets': 'true' } },
    secrets: [{ name: 'good' }],
  }
  const because = 'is not allowed because service account default does not reference that'
  const bad = { valueFrom: { secretKeyRef: { name: 'bad', key: 'k' } } }
  const strictTable: readonly [what: string, spec: object, message: string | undefined][] = [
    ['a volume with a listed secret', { volumes: [{ name: 'v', secret: { secretName: 'good' } }] }, undefined],
    [
      'a volume with an unlisted secret',
      { volumes: [{ name: 'v', secret: { secretName: 'bad' } }] },
      `volume with secret.secretName="bad" ${because} secret`,
    ],
    [
      'a variable with an unlisted secret',
      { containers: [{ name: 'c', resources: {}, env: [{ name: 'E', ...bad }] }] },
      `container c with envVar E referencing secret.secretName="bad" ${because} secret`,
    ],
    [
      'an init container with an unlisted secret',
      { initContainers: [{ name: 'i', resources: {}, envFrom: [{ secretRef: { name: 'bad' } }] }] },
      `init container i with envFrom referencing secret.secretName="bad" ${because} secret`,
    ],
    [
      'an unlisted pull secret',
      { imagePullSecrets: [{ name: 'bad' }] },
      `imagePullSecrets[0].name="bad" ${because} imagePullSecret`,
    ],
  ]
  for (const [what, spec, message] of strictTable) {
    it(`enforces mountable secrets for ${what}`, async () => {
      const expected = message === undefined ? undefined : `pods "p" is forbidden: ${message}`
      const world = accounts(strict)
      assert.equal(await refusal(plugin, { resource: 'pods', object: pod(spec), world }), expected)
    })
  }

  it("enforces mountable secrets for ephemeral containers, with upstream's status code", async () => {
    const ephemeralContainers = [{ name: 'e', resources: {}, env: [{ name: 'E', ...bad }] }]
    const object = pod({ serviceAccountName: 'default', ephemeralContainers })
    const status = await refusalStatus(plugin, {
      resource: 'pods',
      subresource: 'ephemeralcontainers',
      object,
      oldObject: pod(),
      world: accounts(strict),
    })
    assert.equal(status?.code, 500)
    assert.equal(
      status?.message,
      `ephemeral container e with envVar E referencing secret.secretName="bad" ${because} secret`,
    )
  })
})
