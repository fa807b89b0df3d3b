/** Tests in a real browser that the page of a pod says why the pod does not start, for each reason. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'

import { Deployments } from '#apis/apps/v1.ts'
import { Nodes, Pods, ResourceQuotas } from '#apis/core/v1.ts'

import { type BrowserBed, startBrowserBed, whyNoBrowser } from './browser-bed.ts'

const PREFIX = 'simulated.hyperkube.io/'
const probe = { httpGet: { path: '/', port: 80 }, periodSeconds: 1 }

interface Reason {
  readonly name: string
  readonly spec?: object
  readonly container?: object
  /** Of the simulated container: what happens to it. */
  readonly fate?: Readonly<Record<string, string>>
  /** The texts of the page. */
  readonly says: readonly RegExp[]
}

const REASONS: readonly Reason[] = [
  {
    name: 'too-large',
    container: { resources: { requests: { cpu: '1000' } } },
    says: [/^No node fits/, /^2 nodes: Insufficient cpu/],
  },
  {
    name: 'selects-no-node',
    spec: { nodeSelector: { disk: 'fast' } },
    says: [/^No node fits/, /^2 nodes: didn't match Pod's node affinity\/selector/],
  },
  {
    name: 'claim-missing',
    spec: { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }] },
    says: [/persistentvolumeclaim "data" not found/, /^Look at PersistentVolumeClaim data/],
  },
  {
    name: 'gated',
    spec: { schedulingGates: [{ name: 'example.com/budget' }] },
    says: [/^The scheduler waits until its scheduling gates are removed/, /^example\.com\/budget/],
  },
  {
    name: 'other-scheduler',
    spec: { schedulerName: 'absent' },
    says: [/^No scheduler has looked at the pod yet/, /^absent/],
  },
  {
    name: 'image-missing',
    fate: { 'pull-error': 'registry.example: manifest unknown' },
    says: [/^Image shop of container app cannot be pulled/, /registry\.example: manifest unknown/],
  },
  {
    name: 'secret-missing',
    spec: { volumes: [{ name: 'keys', secret: { secretName: 'keys' } }] },
    says: [/^A volume cannot be mounted/, /secret "keys" not found/],
  },
  {
    name: 'config-missing',
    container: { envFrom: [{ configMapRef: { name: 'settings' } }] },
    says: [/^Container app cannot be created/, /configmap "settings" not found/],
  },
  {
    name: 'crashes',
    fate: { crash: '0.1s' },
    says: [/^Container app ended \d+ times; the kubelet waits/, /^Its last run ended: Error, exit code 1/],
  },
  {
    name: 'out-of-memory',
    fate: { oom: '0.1s' },
    says: [/^It used more memory than its limit, so the kernel killed it/],
  },
  {
    name: 'init-fails',
    spec: { initContainers: [{ name: 'migrate', image: 'shop', command: ['sh', '-c', 'sleep 0.1; exit 7'] }] },
    says: [/^Init container migrate must complete first/, /Error, exit code 7/],
  },
  {
    name: 'not-ready',
    container: { readinessProbe: probe },
    fate: { 'ready-delay': '1h' },
    says: [/^Container app runs, but its readiness probe fails/, /^Readiness probe failed/],
  },
  {
    name: 'starts-slowly',
    container: { startupProbe: { ...probe, failureThreshold: 1000 } },
    fate: { 'ready-delay': '1h' },
    says: [/^Container app runs, but its startup probe has not succeeded yet/],
  },
  {
    name: 'gate-of-readiness',
    spec: { readinessGates: [{ conditionType: 'example.com/registered' }] },
    says: [/^Readiness gate example\.com\/registered is not true/],
  },
]

describe('the reasons of a pod that does not start', { skip: whyNoBrowser }, () => {
  let bed: BrowserBed
  before(async () => {
    bed = await startBrowserBed({ nodes: 2 })
    for (const reason of REASONS) await bed.cluster.client.create(Pods, podOf(reason) as never)
  })
  after(() => bed?.[Symbol.asyncDispose]())

  const shown = async (says: readonly RegExp[]): Promise<void> => {
    const why = bed.page.getByRole('region', { name: 'Why it is not ready' })
    for (const text of says) await why.getByText(text).first().waitFor()
  }

  for (const { name, says } of REASONS) {
    it(`are on its page: ${name}`, async () => {
      await bed.open(`/core/v1/pods/default/${name}`)
      await shown(says)
    })
  }

  it('lead to the object that is missing', async () => {
    await bed.open('/core/v1/pods/default/secret-missing')
    await bed.page.getByRole('region', { name: 'Why it is not ready' }).getByRole('link').first().click()
    await bed.page.waitForURL(/\/core\/v1\/secrets\/default\/keys/)
  })

  it('name the node that is lost', async () => {
    const { client } = bed.cluster
    const pod = { name: 'on-node-1', spec: { nodeName: 'node-1' }, says: [] }
    await client.create(Pods, podOf(pod) as never)
    await bed.open('/core/v1/pods/default/on-node-1')
    await bed.page.getByRole('heading', { name: 'on-node-1' }).waitFor()
    const node = await client.get(Nodes, { name: 'node-1' })
    const annotations = { ...node.metadata.annotations, [`${PREFIX}fault`]: 'down' }
    const conditions = node.status?.conditions?.map((one) => ({
      ...one,
      ...(one.type === 'Ready' && { status: 'Unknown', message: 'Kubelet stopped posting node status.' }),
    }))
    // A node that is down reports nothing more. Its lifecycle controller would need 40 s to say so.
    await client.update(Nodes, { ...node, metadata: { ...node.metadata, annotations } })
    const silent = await client.get(Nodes, { name: 'node-1' })
    await client.updateStatus(Nodes, { ...silent, status: { ...silent.status, conditions } } as never)
    await bed.open('/core/v1/pods/default/on-node-1')
    await shown([/^Its node node-1 is not ready/, /^Kubelet stopped posting node status/])
  })

  it('name the quota that refuses the pods of a Deployment', async () => {
    const { client } = bed.cluster
    await client.create(ResourceQuotas, {
      metadata: { name: 'no-pods', namespace: 'default' },
      spec: { hard: { pods: '0' } },
    })
    const labels = { app: 'refused' }
    await client.create(Deployments, {
      metadata: { name: 'refused', namespace: 'default' },
      spec: {
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'app', image: 'shop' }] } },
      },
    } as never)
    await bed.open('/apps/v1/deployments/default/refused')
    await shown([/^A quota of the namespace forbids more pods/, /exceeded quota: no-pods/])
    assert.deepEqual(bed.troubles, [])
  })
})

function podOf({ name, spec = {}, container = {}, fate = {} }: Reason): object {
  const annotations = Object.fromEntries(Object.entries(fate).map(([key, value]) => [PREFIX + key, value]))
  return {
    metadata: { name, namespace: 'default', annotations },
    spec: { containers: [{ name: 'app', image: 'shop', ...container }], ...spec },
  }
}
