/** Scenarios of certificate requests, device claims, address ranges and policy status. */
import { ValidatingAdmissionPolicies } from '#apis/admissionregistration/v1.ts'
import { type CertificateSigningRequest, CertificateSigningRequests } from '#apis/certificates/v1.ts'
import { Pods, Services } from '#apis/core/v1.ts'
import { ServiceCIDRs } from '#apis/networking/v1.ts'
import { ResourceClaims, ResourceClaimTemplates } from '#apis/resource/v1.ts'
import { createKey } from '#lib/x509/key.ts'
import { createRequest, type RequestPlan } from '#lib/x509/request.ts'

import { template } from './rollouts.ts'
import type { Act, Scenario } from './scenario.ts'

const CLIENT = 'kubernetes.io/kube-apiserver-client'
const KUBELET = 'kubernetes.io/kube-apiserver-client-kubelet'
const SERVING = 'kubernetes.io/kubelet-serving'
const NODE: RequestPlan = { commonName: 'system:node:n1', organizations: ['system:nodes'] }

interface Asked {
  readonly name: string
  readonly signerName: string
  readonly usages?: readonly string[]
  readonly plan?: RequestPlan
  readonly [field: string]: unknown
}

async function ask(act: Act, { name, plan, usages = ['client auth'], ...spec }: Asked): Promise<void> {
  const { pem } = createRequest(plan ?? { commonName: 'jane', organizations: ['dev'] }, createKey())
  const request = Buffer.from(pem).toString('base64')
  await act.make(CertificateSigningRequests, `${act.ns}-${name}`, { spec: { ...spec, usages, request } })
}

async function decide(act: Act, name: string, type = 'Approved'): Promise<void> {
  const conditions = [{ type, status: 'True', reason: 'ByHand', message: 'as told' }]
  await act.change(CertificateSigningRequests, `${act.ns}-${name}`, { status: { conditions } }, 'approval')
}

const has = (act: Act, name: string, isTrue: (request: CertificateSigningRequest) => boolean): Promise<void> =>
  act.until(CertificateSigningRequests, `${act.ns}-${name}`, isTrue)

const isSigned = ({ status }: CertificateSigningRequest): boolean => status.certificate !== undefined
const hasFailed = ({ status }: CertificateSigningRequest): boolean =>
  (status.conditions ?? []).some(({ type }) => type === 'Failed')

const requests = (name: string, run: (act: Act) => Promise<void>): Scenario => ({
  name,
  clusterKinds: [CertificateSigningRequests],
  run,
  async clean(act) {
    const own = (await act.list(CertificateSigningRequests)).filter(({ metadata }) => metadata.name?.startsWith(act.ns))
    for (const { metadata } of own) await act.remove(CertificateSigningRequests, metadata.name ?? '')
  },
})

const device = { devices: { requests: [{ name: 'r', exactly: { deviceClassName: 'none' } }] } }
const claiming = (claim: object): object => ({
  containers: [{ name: 'c', image: 'i', resources: { claims: [{ name: 'd' }] } }],
  resourceClaims: [{ name: 'd', ...claim }],
})

export const REQUESTS: readonly Scenario[] = [
  requests('approved CertificateSigningRequests are signed, and denied ones are not', async (act) => {
    await ask(act, { name: 'yes', signerName: CLIENT, usages: ['client auth', 'digital signature'] })
    await ask(act, { name: 'short', signerName: CLIENT, expirationSeconds: 3600 })
    await ask(act, { name: 'no', signerName: CLIENT })
    await ask(act, { name: 'open', signerName: CLIENT })
    await ask(act, { name: 'others', signerName: 'example.com/signer' })
    for (const name of ['yes', 'short', 'others']) await decide(act, name)
    await decide(act, 'no', 'Denied')
    for (const name of ['yes', 'short']) await has(act, name, isSigned)
  }),
  requests('CertificateSigningRequests of kubelets are approved automatically', async (act) => {
    const usages = ['client auth', 'digital signature', 'key encipherment']
    await ask(act, { name: 'client', signerName: KUBELET, usages, plan: NODE })
    await ask(act, { name: 'no-node', signerName: KUBELET, usages })
    const names = { dns: ['n1'] }
    const serving = ['server auth', 'digital signature', 'key encipherment']
    await ask(act, { name: 'serving', signerName: SERVING, usages: serving, plan: { ...NODE, names } })
    await has(act, 'client', isSigned)
  }),
  requests("CertificateSigningRequests that violate the signer's rules fail", async (act) => {
    await ask(act, { name: 'usages', signerName: CLIENT, usages: ['server auth'] })
    await ask(act, {
      name: 'masters',
      signerName: KUBELET,
      plan: { commonName: 'system:node:n1', organizations: ['dev'] },
    })
    await ask(act, { name: 'nameless', signerName: SERVING, usages: ['server auth'], plan: NODE })
    for (const name of ['usages', 'masters', 'nameless']) {
      await decide(act, name)
      await has(act, name, hasFailed)
    }
  }),
  {
    name: 'ResourceClaim from a template is created for a pod and deleted with it',
    async run(act) {
      await act.make(ResourceClaimTemplates, 'tpl', { spec: { metadata: { labels: { a: 'b' } }, spec: device } })
      await act.make(Pods, 'p', template('one', {}, claiming({ resourceClaimTemplateName: 'tpl' })))
      await act.make(Pods, 'q', template('one', {}, claiming({ resourceClaimTemplateName: 'tpl' })))
      await act.make(Pods, 'none', template('one', {}, claiming({ resourceClaimTemplateName: 'missing' })))
      for (const name of ['p', 'q'])
        await act.until(Pods, name, ({ status }) => (status.resourceClaimStatuses ?? []).length === 1)
      await act.remove(Pods, 'q')
      await act.gone(Pods, 'q')
      await act.untilAll(ResourceClaims, (claims) => claims.length === 1)
    },
  },
  {
    name: 'ResourceClaim is deallocated after its last pod',
    async run(act) {
      await act.make(ResourceClaims, 'shared', { spec: device })
      const pod = await act.make(
        Pods,
        'p',
        template(
          'exit',
          { 'stand-in/fate': 'exit 0', 'stand-in/after-ms': '2500' },
          { ...claiming({ resourceClaimName: 'shared' }), restartPolicy: 'Never' },
        ),
      )
      const reservedFor = [{ resource: 'pods', name: 'p', uid: pod.metadata.uid }]
      const finalizers = ['resource.kubernetes.io/delete-protection']
      await act.change(ResourceClaims, 'shared', { metadata: { finalizers } })
      const results = [{ request: 'r', driver: 'example.com', pool: 'p', device: 'd' }]
      const allocation = { devices: { results } }
      await act.change(ResourceClaims, 'shared', { status: { allocation, reservedFor } }, 'status')
      await act.until(Pods, 'p', ({ status }) => status.phase === 'Succeeded')
      await act.until(ResourceClaims, 'shared', ({ status }) => status?.reservedFor === undefined)
      await act.wait(1500)
      await act.remove(ResourceClaims, 'shared')
      await act.gone(ResourceClaims, 'shared')
    },
  },
  {
    name: 'ServiceCIDR is removed after its last address',
    isAlone: true,
    clusterKinds: [ServiceCIDRs],
    async run(act) {
      const name = `${act.ns}-range`
      await act.make(ServiceCIDRs, name, { spec: { cidrs: ['10.77.0.0/24'] } })
      const isReady = (wanted: string): Promise<void> =>
        act.until(ServiceCIDRs, name, ({ status }) => status?.conditions?.[0]?.status === wanted)
      await isReady('True')
      await act.make(Services, 'inside', { spec: { clusterIP: '10.77.0.9', ports: [{ port: 80 }] } })
      await act.remove(ServiceCIDRs, name)
      await isReady('False')
      await act.wait(2000)
      await act.remove(Services, 'inside')
      await act.gone(ServiceCIDRs, name)
    },
  },
  {
    name: 'ValidatingAdmissionPolicy gets the warnings of the type checker',
    clusterKinds: [ValidatingAdmissionPolicies],
    async run(act) {
      const rule = { apiGroups: ['apps'], apiVersions: ['v1'], operations: ['CREATE'], resources: ['deployments'] }
      for (const [name, expression] of [
        ['wrong', 'object.spec.replicas > "5"'],
        ['fine', 'object.spec.replicas > 5'],
        ['absent', 'object.spec.nothing == 5'],
      ] as const) {
        const spec = {
          failurePolicy: 'Fail',
          matchConstraints: { resourceRules: [rule] },
          validations: [{ expression }],
        }
        await act.make(ValidatingAdmissionPolicies, `${act.ns}-${name}`, { spec })
        await act.until(
          ValidatingAdmissionPolicies,
          `${act.ns}-${name}`,
          ({ metadata, status }) => status?.observedGeneration === metadata.generation,
        )
      }
    },
    async clean(act) {
      for (const name of ['wrong', 'fine', 'absent']) await act.remove(ValidatingAdmissionPolicies, `${act.ns}-${name}`)
    },
  },
]
