/**
 * Tests the certificates of a kubelet with a virtual clock: they are requested, rotated before they expire, and stored
 * in upstream's layout.
 */
import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'

import { CertificateSigningRequests } from '#apis/certificates/v1.ts'
import { ClusterRoleBindings } from '#apis/rbac/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import { certificateApprovingController } from '#controllers/identity/certificates/approving.ts'
import { certificateSigningController } from '#controllers/identity/certificates/signing.ts'
import { controllerSettings } from '#controllers/settings.ts'
import { startControllers } from '#kits/controllers/start.ts'
import { CertificateManager } from '#kubelet/certificates/certificate-manager.ts'
import { digestedName } from '#kubelet/certificates/certificate-request.ts'
import { CertificateStore, type StoredPair } from '#kubelet/certificates/certificate-store.ts'
import { countClientCertificate } from '#kubelet/metrics/certificate-metrics.ts'
import { createVirtualClock, realClock, type VirtualClock } from '#lib/clock.ts'
import { createRegistry } from '#lib/metrics/metrics.ts'
import { createSeededRandom, secureRandom } from '#lib/random.ts'
import { createAuthority } from '#lib/x509/authority.ts'
import { createKey, keyToPem, parsePrivateKey } from '#lib/x509/key.ts'
import { errorLog, startControlPlane } from '#testing/control-plane.ts'

/** Short enough for a server with all its timers. */
const LIFE_MS = 12 * 60_000
const CLIENT = 'kubernetes.io/kube-apiserver-client-kubelet'

interface Bed extends AsyncDisposable {
  readonly clock: VirtualClock
  readonly client: ApiClient
  readonly folder: string
  readonly seen: StoredPair[]
  /** Starts the rotation for node1. */
  keep(): Promise<CertificateManager>
  count(): Promise<number>
}

async function startBed(lifeMs: number): Promise<Bed> {
  const clock = createVirtualClock(realClock.now())
  const closing = new AsyncDisposableStack()
  const authority = createAuthority({ commonName: 'ca' }, { clock, random: secureRandom })
  const files = new Map([
    ['ca.crt', authority.certificatePem],
    ['ca.key', authority.keyPem],
  ])
  const plane = await startControlPlane({ clock })
  closing.defer(() => plane.stop())
  const controllers = startControllers(plane, clock, [certificateApprovingController, certificateSigningController], {
    settings: controllerSettings({
      'cluster-signing-cert-file': 'ca.crt',
      'cluster-signing-key-file': 'ca.key',
      'cluster-signing-duration': lifeMs,
    }),
    readFile: (path) => Promise.resolve(files.get(path) ?? ''),
  })
  closing.defer(() => controllers.stop())
  const { client } = controllers
  await client.create(ClusterRoleBindings, {
    metadata: { name: 'renew' },
    roleRef: {
      apiGroup: 'rbac.authorization.k8s.io',
      kind: 'ClusterRole',
      name: 'system:certificates.k8s.io:certificatesigningrequests:selfnodeclient',
    },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'system:nodes' }],
  })
  const folder = await mkdtemp(join(tmpdir(), 'certificates-'))
  closing.defer(() => rm(folder, { recursive: true }))
  const stop = new AbortController()
  closing.defer(() => stop.abort())
  const asNode = { name: 'system:node:node1', uid: '', groups: ['system:nodes', 'system:authenticated'], extra: {} }
  const own = new ApiClient({ transport: plane.running.server.clientAs(asNode), clock, userAgent: 'kubelet' })
  const seen: StoredPair[] = []
  return {
    clock,
    client,
    folder,
    seen,
    async keep() {
      const keeper = new CertificateManager({
        clock,
        random: createSeededRandom(5),
        log: errorLog(),
        store: new CertificateStore(folder, 'kubelet-client', clock),
        spec: { node: 'node1', signer: CLIENT, purpose: 'client auth' },
        client: own,
        signal: stop.signal,
        changed: (pair) => seen.push(pair),
        counts: countClientCertificate(createRegistry(), clock),
      })
      await keeper.start()
      return keeper
    },
    count: async () => (await client.list(CertificateSigningRequests, {})).items.length,
    async [Symbol.asyncDispose]() {
      const ended = closing.disposeAsync()
      await clock.advance(5000)
      await ended
    },
  }
}

describe('client certificate of a kubelet', () => {
  it('is requested at once, and rotated after 70 to 90 % of its lifetime', async () => {
    await using bed = await startBed(LIFE_MS)
    const keeper = await bed.keep()
    await bed.clock.advance(5000)
    const first = keeper.current?.leaf
    assert.ok(first)
    assert.deepEqual([first.subject.commonName, first.subject.organizations], ['system:node:node1', ['system:nodes']])
    const lifeMs = first.notAfterMs - first.notBeforeMs
    await bed.clock.advance(first.notBeforeMs + 0.7 * lifeMs - bed.clock.now())
    assert.equal(keeper.current?.leaf.serialNumber, first.serialNumber)
    await bed.clock.advance(0.2 * lifeMs + 5000)
    assert.notEqual(keeper.current?.leaf.serialNumber, first.serialNumber)
    assert.equal(bed.seen.length, 2)
    const files = (await readdir(bed.folder)).filter((name) => name.startsWith('kubelet-client-2'))
    assert.equal(files.length, 2)
    assert.equal((await new CertificateStore(bed.folder, 'kubelet-client', bed.clock).current())?.key, bed.seen[1]?.key)
  })

  it('is reused after a restart, and replaced if it is expired or of another node', async () => {
    await using bed = await startBed(LIFE_MS)
    await bed.keep()
    await bed.clock.advance(5000)
    await bed.keep()
    await bed.clock.advance(5000)
    assert.equal(await bed.count(), 1)
  })

  it('stays in use while the next one is not approved', async () => {
    await using bed = await startBed(LIFE_MS)
    const keeper = await bed.keep()
    await bed.clock.advance(5000)
    await bed.client.delete(ClusterRoleBindings, { name: 'renew' })
    const first = keeper.current?.leaf
    await bed.clock.advance(0.92 * LIFE_MS)
    assert.equal(keeper.current?.leaf.serialNumber, first?.serialNumber)
    assert.equal(await bed.count(), 2)
  })
})

describe('CertificateStore of a kubelet', () => {
  const clock = createVirtualClock(Date.UTC(2026, 10, 16, 4, 5, 6))
  const authority = createAuthority({ commonName: 'ca' }, { clock, random: secureRandom })

  it('keeps the current certificate if the new one is invalid, and recovers from a killed writer', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'store-'))
    t.after(() => rm(folder, { recursive: true }))
    const store = new CertificateStore(folder, 'kubelet-client', clock)
    assert.equal(await store.current(), undefined)
    const good = authority.issue({ commonName: 'system:node:a', purpose: 'client' })
    await symlink('/nowhere', join(folder, 'kubelet-client-updated.pem'))
    await store.update(good.certificatePem, good.keyPem)
    await assert.rejects(store.update(good.certificatePem, keyToPem(createKey())), /does not belong to the key/)
    assert.equal((await store.current())?.key, keyToPem(parsePrivateKey(good.keyPem)))
    assert.deepEqual(await readdir(folder), ['kubelet-client-2026-11-16-04-05-06.pem', 'kubelet-client-current.pem'])
    await writeFile(
      join(folder, 'kubelet-client-2026-11-16-04-05-06.pem'),
      (await readFile(store.currentPath)).subarray(0, 100),
    )
    assert.equal(await store.current(), undefined)
  })
})

describe('digestedName() of a CertificateSigningRequest', () => {
  it('depends only on the key, the subject and the usages', () => {
    const key = createKey()
    const subject = { commonName: 'system:node:a', organizations: ['system:nodes'] }
    const name = digestedName(key, subject, ['digital signature', 'client auth'])
    assert.match(name, /^node-csr-[\w-]{43}$/)
    assert.equal(digestedName(key, subject, ['digital signature', 'client auth']), name)
    assert.notEqual(digestedName(key, subject, ['client auth', 'digital signature']), name)
    assert.notEqual(digestedName(createKey(), subject, ['digital signature', 'client auth']), name)
  })
})
