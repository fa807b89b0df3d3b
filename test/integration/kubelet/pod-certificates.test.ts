/** Tests pod certificates with a node's permissions and a signer at a real API server. */
import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'

import { type PodCertificateRequest, PodCertificateRequests } from '#apis/certificates/v1beta1.ts'
import { type Node, Nodes, type Pod, type PodCertificateProjection, Pods, ServiceAccounts } from '#apis/core/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import { createKubeletMeters } from '#kubelet/metrics/kubelet-families.ts'
import { readObjects } from '#kubelet/object-cache.ts'
import type { EventSpec } from '#kubelet/pod/events.ts'
import { createVolumeManager } from '#kubelet/volumes/create-volume-manager.ts'
import { projected } from '#kubelet/volumes/plugins/projected.ts'
import { PodCertificates } from '#kubelet/volumes/pod-certificates.ts'
import { PodTokens } from '#kubelet/volumes/pod-tokens.ts'
import { createVolumeSources } from '#kubelet/volumes/volume-sources.ts'
import { createVirtualClock, type VirtualClock } from '#lib/clock.ts'
import { createLog } from '#lib/log/log.ts'
import { createSeededRandom, secureRandom } from '#lib/random.ts'
import { createAuthority } from '#lib/x509/authority.ts'
import { parseCertificate } from '#lib/x509/certificate.ts'
import { isSameKey } from '#lib/x509/key.ts'
import { parseRequest } from '#lib/x509/request.ts'
import { timeOf } from '#meta/time.ts'
import { startControlPlane } from '#testing/control-plane.ts'

const namespace = 'default'
const LIFE_MS = 3_600_000
const REFRESH_MS = 1_800_000
/** The authority backdates certificates; signers must not. */
const BACKDATED_MS = 300_000
const NOT_YET = 'credential bundle is not issued yet'

interface Bed extends AsyncDisposable {
  readonly clock: VirtualClock
  readonly admin: ApiClient
  /** The client of the node. */
  readonly client: ApiClient
  readonly node: Node
  readonly certificates: PodCertificates
  readonly events: EventSpec[]
  readonly errors: unknown[]
  makePod(...projections: PodCertificateProjection[]): Promise<Pod>
  /** The files of the volume. */
  readFiles(pod: Pod): Promise<Map<string, string>>
  requests(): Promise<PodCertificateRequest[]>
  /** Sets the status of each pending request. */
  decide(status: (request: PodCertificateRequest) => object): Promise<void>
}

async function startBed(): Promise<Bed> {
  const clock = createVirtualClock(Date.UTC(2026, 0, 1))
  const plane = await startControlPlane({
    clock,
    settings: {
      'runtime-config': new Map([['certificates.k8s.io/v1beta1/podcertificaterequests', 'true']]),
      'feature-gates': new Map([['PodCertificateRequest', true]]),
      'authorization-mode': ['Node', 'RBAC'],
    },
  })
  const clientAs = (name: string, ...groups: string[]): ApiClient => {
    const user = { name, uid: '', groups: [...groups, 'system:authenticated'], extra: {} }
    return new ApiClient({ transport: plane.running.server.clientAs(user), clock, userAgent: 'test' })
  }
  const admin = clientAs('admin', 'system:masters')
  await admin.create(ServiceAccounts, { metadata: { namespace, name: 'robot' } })
  const node = await admin.create(Nodes, { metadata: { name: 'node1' }, spec: {} })
  const client = clientAs('system:node:node1', 'system:nodes')
  const events: EventSpec[] = []
  const errors: unknown[] = []
  const random = createSeededRandom(1)
  const onError = (error: unknown): void => void errors.push(error)
  const recordEvent = (_: Pod, event: EventSpec): void => void events.push(event)
  const certificates = new PodCertificates({ client, random, node: () => node, recordEvent, onError })
  const objects = readObjects(client)
  const tokens = new PodTokens({ client, random, onError })
  const about = { tokens, certificates, node: () => node, memoryBytes: 1 << 30 }
  const sources = createVolumeSources({ client, objects, ...about })
  const requests = async (): Promise<PodCertificateRequest[]> => (await admin.list(PodCertificateRequests)).items
  let made = 0
  return {
    clock,
    admin,
    client,
    node,
    certificates,
    events,
    errors,
    makePod: (...projections) => {
      const volumeMounts = [{ name: 'v', mountPath: '/m' }]
      const sources = projections.map((podCertificate) => ({ podCertificate }))
      const volumes = [{ name: 'v', projected: { sources } }]
      const containers = [{ name: 'c', image: 'x', resources: {}, volumeMounts }]
      const spec = { nodeName: 'node1', serviceAccountName: 'robot', containers, volumes }
      return admin.create(Pods, { metadata: { namespace, name: `p${++made}` }, spec })
    },
    async readFiles(pod) {
      const [volume = { name: '' }] = pod.spec.volumes ?? []
      const plan = await projected.plan({ pod, volume }, sources)
      const files = plan.at === 'pod' ? plan.files : undefined
      return new Map([...(files ?? [])].map(([path, { data }]) => [path, data.toString()]))
    },
    requests,
    async decide(status) {
      const waiting = (await requests()).filter(({ status: { conditions = [] } }) => conditions.length === 0)
      assert.notEqual(waiting.length, 0)
      for (const request of waiting) {
        const { name = '' } = request.metadata
        await admin.patch(
          PodCertificateRequests,
          { namespace, name, subresource: 'status' },
          { type: 'merge', value: { status: status(request) } },
        )
      }
    },
    [Symbol.asyncDispose]: () => plane[Symbol.asyncDispose](),
  }
}

const outcome = (clock: VirtualClock, type: string, reason: string, message = ''): object => ({
  type,
  status: 'True',
  reason,
  message,
  lastTransitionTime: timeOf(clock.now()),
})

function signed(clock: VirtualClock, request: PodCertificateRequest): object {
  const authority = createAuthority(
    { commonName: 'signer' },
    { clock: { ...clock, now: () => clock.now() + BACKDATED_MS }, random: secureRandom },
  )
  const { publicKey } = parseRequest(Buffer.from(request.spec.stubPKCS10Request, 'base64'))
  const plan = { commonName: request.spec.podName, purpose: 'client', key: publicKey, validityMs: LIFE_MS } as const
  const { certificate, certificatePem } = authority.issue(plan)
  return {
    conditions: [outcome(clock, 'Issued', 'Fine')],
    certificateChain: certificatePem,
    notBefore: timeOf(certificate.notBeforeMs),
    beginRefreshAt: timeOf(clock.now() + REFRESH_MS),
    notAfter: timeOf(certificate.notAfterMs),
  }
}

const PROJECTION: PodCertificateProjection = {
  signerName: 'example.com/signer',
  keyType: 'ECDSAP256',
  credentialBundlePath: 'bundle.pem',
}

/** A pod with its first certificate. */
async function issuedIn(bed: Bed): Promise<{ readonly pod: Pod; readonly first: Map<string, string> }> {
  const pod = await bed.makePod(PROJECTION)
  await assert.rejects(bed.readFiles(pod), { message: NOT_YET })
  await bed.decide((request) => signed(bed.clock, request))
  return { pod, first: await bed.readFiles(pod) }
}

/** The random delay of the first renewal. */
const JITTER_MS = Math.ceil(createSeededRandom(1).float() * 300_000)

const KEYS: Readonly<Record<string, object>> = {
  RSA3072: { modulusLength: 3072, publicExponent: 65_537n },
  RSA4096: { modulusLength: 4096, publicExponent: 65_537n },
  ECDSAP256: { namedCurve: 'prime256v1' },
  ECDSAP384: { namedCurve: 'secp384r1' },
  ECDSAP521: { namedCurve: 'secp521r1' },
  ED25519: {},
}

describe('projected pod certificates', () => {
  it('are requested with every key type', async () => {
    await using bed = await startBed()
    for (const [keyType, details] of Object.entries(KEYS)) {
      const paths = { credentialBundlePath: 'bundle.pem', keyPath: 'key.pem', certificateChainPath: 'chain.pem' }
      const userAnnotations = { 'example.com/word': keyType }
      const pod = await bed.makePod({ ...PROJECTION, ...paths, keyType, maxExpirationSeconds: 86_400, userAnnotations })
      await assert.rejects(bed.readFiles(pod), { message: NOT_YET })
      await bed.decide((request) => {
        assert.equal(request.spec.podUID, pod.metadata.uid)
        assert.equal(request.spec.maxExpirationSeconds, 86_400)
        assert.deepEqual(request.spec.unverifiedUserAnnotations, userAnnotations)
        assert.equal(request.metadata.ownerReferences?.[0]?.uid, pod.metadata.uid)
        return signed(bed.clock, request)
      })
      const files = await bed.readFiles(pod)
      const [key = '', chain = ''] = [files.get('key.pem'), files.get('chain.pem')]
      assert.equal(files.get('bundle.pem'), key + chain)
      assert.ok(isSameKey(parseCertificate(chain).publicKey, createPrivateKey(key)), keyType)
      assert.deepEqual(createPrivateKey(key).asymmetricKeyDetails, details)
    }
    assert.deepEqual([...bed.certificates.counts()], [{ signerName: 'example.com/signer', state: 'fresh', count: 6 }])
  })

  it('are renewed at the time that the signer sets, and the old one stays until then', async () => {
    await using bed = await startBed()
    const { clock } = bed
    const { pod, first } = await issuedIn(bed)
    await clock.advance(REFRESH_MS + JITTER_MS - 1000)
    assert.deepEqual(await bed.readFiles(pod), first)
    assert.equal((await bed.requests()).length, 1)
    await clock.advance(2000)
    assert.deepEqual(await bed.readFiles(pod), first, 'the signer has not answered yet')
    assert.equal((await bed.requests()).length, 2)
    await bed.decide((request) => signed(clock, request))
    const second = await bed.readFiles(pod)
    assert.notDeepEqual(second, first)
    assert.deepEqual(await bed.readFiles(pod), second)
    assert.equal((await bed.requests()).length, 2)
    assert.deepEqual(bed.events, [])
  })

  it('cause one warning if they are not renewed in time, and stay in use', async () => {
    await using bed = await startBed()
    const { clock } = bed
    const { pod, first } = await issuedIn(bed)
    const stateAfter = async (ms: number): Promise<string | undefined> => {
      await clock.advance(ms)
      assert.deepEqual(await bed.readFiles(pod), first)
      assert.deepEqual(await bed.readFiles(pod), first)
      return [...bed.certificates.counts()][0]?.state
    }
    assert.equal(await stateAfter(REFRESH_MS + 301_000), 'fresh')
    assert.equal(await stateAfter(600_000), 'overdue_for_refresh')
    assert.equal(await stateAfter(LIFE_MS), 'expired')
    assert.deepEqual(bed.events, [
      { type: 'Warning', reason: 'CertificateOverdueForRefresh', message: 'PodCertificate refresh overdue' },
      { type: 'Warning', reason: 'CertificateExpired', message: 'PodCertificate expired' },
    ])

    await bed.decide((request) => signed(clock, request))
    assert.notDeepEqual(await bed.readFiles(pod), first)
    await clock.advance(2 * LIFE_MS)
    await bed.readFiles(pod)
    assert.deepEqual(
      bed.events.slice(2).map(({ reason }) => reason),
      ['CertificateOverdueForRefresh', 'CertificateExpired'],
      'of the next one people are told again',
    )
  })

  it('stay in use if a new request fails', async () => {
    await using bed = await startBed()
    const { pod, first } = await issuedIn(bed)
    await bed.clock.advance(REFRESH_MS + 301_000)
    await bed.admin.delete(ServiceAccounts, { namespace, name: 'robot' })
    assert.deepEqual(await bed.readFiles(pod), first)
    assert.match(String(bed.errors), /serviceaccounts "robot" not found/)
    assert.equal(bed.errors.length, 1)
  })

  it('are one per projected source, and have no other files', async () => {
    await using bed = await startBed()
    const paths = { credentialBundlePath: '', keyPath: 'key.pem', certificateChainPath: 'chain.pem' }
    const pod = await bed.makePod(PROJECTION, { ...PROJECTION, ...paths })
    await assert.rejects(bed.readFiles(pod), { message: NOT_YET })
    assert.equal((await bed.requests()).length, 2)
    let plain = ''
    await bed.decide((request) => {
      const { certificateChain, ...status } = signed(bed.clock, request) as { certificateChain: string }
      plain = certificateChain
      return { ...status, certificateChain: `of the signer\n${certificateChain}\n` }
    })
    const files = await bed.readFiles(pod)
    const bundle = files.get('bundle.pem') ?? ''
    assert.ok(!bundle.startsWith(files.get('key.pem') ?? ''))
    assert.doesNotMatch([...files.values()].join(), /of the signer/)
    assert.ok([bundle.slice(bundle.indexOf('-----BEGIN CERTIFICATE')), files.get('chain.pem')].includes(plain))
  })

  it("are not requested again after a denial, which the pod's events report", async () => {
    await using bed = await startBed()
    const pod = await bed.makePod(PROJECTION)
    await assert.rejects(bed.readFiles(pod), { message: NOT_YET })
    await bed.decide(() => ({ conditions: [outcome(bed.clock, 'Denied', 'Stranger', 'who is "p1"?')] }))
    const message = 'PodCertificateRequest was permanently denied: reason="Stranger" message="who is \\"p1\\"?"'
    await assert.rejects(bed.readFiles(pod), { message })
    await assert.rejects(bed.readFiles(pod), { message })
    const [request] = await bed.requests()
    const told = `PodCertificateRequest default/${request?.metadata.name} was denied, reason="Stranger", message="who is \\"p1\\"?"`
    assert.deepEqual(bed.events, [{ type: 'Warning', reason: 'Denied', message: told }])
    assert.deepEqual(
      [...bed.certificates.counts()].map(({ state }) => state),
      ['denied'],
    )
  })

  it('are requested again if the request was deleted, and removed with the pod', async () => {
    await using bed = await startBed()
    const pod = await bed.makePod(PROJECTION)
    await Promise.all([1, 2, 3].map(() => assert.rejects(bed.readFiles(pod), { message: NOT_YET })))
    const [request, ...others] = await bed.requests()
    assert.deepEqual(others, [])
    const { name = '' } = request?.metadata ?? {}
    await bed.admin.delete(PodCertificateRequests, { namespace, name })
    await assert.rejects(bed.readFiles(pod), { message: NOT_YET })
    assert.equal((await bed.requests()).length, 1)
    bed.certificates.forget(pod.metadata.uid ?? '')
    assert.deepEqual([...bed.certificates.counts()], [])
  })

  it('are counted by state until the pod is removed', async () => {
    await using bed = await startBed()
    const { client, clock, node } = bed
    const rootDir = await mkdtemp(join(tmpdir(), 'pod-certificates-'))
    const meters = createKubeletMeters()
    const { logger: log } = createLog({ stream: { write: (_, done) => done() }, clock })
    const keeper = createVolumeManager({
      client,
      clock,
      log,
      meters,
      objects: readObjects(client),
      random: secureRandom,
      node: () => node,
      recordEvent: () => undefined,
      facts: { rootDir, memoryBytes: 1 << 26 },
    })
    const pod = await bed.makePod(PROJECTION)
    const mounted = await keeper.mount(pod, new AbortController().signal)
    assert.match(JSON.stringify(mounted), new RegExp(NOT_YET))
    const count = 'kubelet_podcertificate_states{signer_name="example.com/signer",state="not_yet_issued"} 1'
    assert.ok(meters.registry.render().split('\n').includes(count))
    await keeper.unmount(pod.metadata.uid ?? '')
    assert.doesNotMatch(meters.registry.render(), /^kubelet_podcertificate_states\{/m)
    await rm(rootDir, { recursive: true })
  })
})
