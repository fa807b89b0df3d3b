/**
 * Tests that discovery has the same resources as v1.36.4 in the same order, with all APIs and feature gates on, and
 * fewer with less enabled. Subresources are in parentheses behind their resource.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { after, before, describe, it } from 'node:test'

import { apiserver } from '#cmd/apiserver.ts'
import { Collector } from '#kits/cmd/run-program.ts'
import { realClock } from '#lib/clock.ts'
import { createHttpClient, type HttpClient } from '#lib/http/client.ts'
import { secureRandom } from '#lib/random.ts'
import { createKey, keyToPem } from '#lib/x509/key.ts'

const EVERYTHING: readonly (readonly [groupVersion: string, resources: string])[] = [
  [
    'v1',
    `bindings componentstatuses configmaps endpoints events limitranges namespaces(finalize,status) nodes(proxy,status)
     persistentvolumeclaims(status) persistentvolumes(status)
     pods(attach,binding,ephemeralcontainers,eviction,exec,log,portforward,proxy,resize,status) podtemplates
     replicationcontrollers(scale,status) resourcequotas(status) secrets serviceaccounts(token) services(proxy,status)`,
  ],
  ['apiregistration.k8s.io/v1', 'apiservices(status)'],
  [
    'apps/v1',
    'controllerrevisions daemonsets(status) deployments(scale,status) replicasets(scale,status) statefulsets(scale,status)',
  ],
  ['events.k8s.io/v1', 'events'],
  ['authentication.k8s.io/v1', 'selfsubjectreviews tokenreviews'],
  [
    'authorization.k8s.io/v1',
    'localsubjectaccessreviews selfsubjectaccessreviews selfsubjectrulesreviews subjectaccessreviews',
  ],
  ['autoscaling/v2', 'horizontalpodautoscalers(status)'],
  ['autoscaling/v1', 'horizontalpodautoscalers(status)'],
  ['batch/v1', 'cronjobs(status) jobs(status)'],
  ['certificates.k8s.io/v1', 'certificatesigningrequests(approval,status)'],
  ['certificates.k8s.io/v1beta1', 'clustertrustbundles podcertificaterequests(status)'],
  ['certificates.k8s.io/v1alpha1', 'clustertrustbundles'],
  ['networking.k8s.io/v1', 'ingressclasses ingresses(status) ipaddresses networkpolicies servicecidrs(status)'],
  ['networking.k8s.io/v1beta1', 'ipaddresses servicecidrs(status)'],
  ['policy/v1', 'poddisruptionbudgets(status)'],
  ['rbac.authorization.k8s.io/v1', 'clusterrolebindings clusterroles rolebindings roles'],
  [
    'storage.k8s.io/v1',
    'csidrivers csinodes csistoragecapacities storageclasses volumeattachments(status) volumeattributesclasses',
  ],
  ['storage.k8s.io/v1beta1', 'volumeattributesclasses'],
  [
    'admissionregistration.k8s.io/v1',
    `mutatingadmissionpolicies mutatingadmissionpolicybindings mutatingwebhookconfigurations
     validatingadmissionpolicies(status) validatingadmissionpolicybindings validatingwebhookconfigurations`,
  ],
  ['admissionregistration.k8s.io/v1beta1', 'mutatingadmissionpolicies mutatingadmissionpolicybindings'],
  ['admissionregistration.k8s.io/v1alpha1', 'mutatingadmissionpolicies mutatingadmissionpolicybindings'],
  ['apiextensions.k8s.io/v1', 'customresourcedefinitions(status)'],
  ['scheduling.k8s.io/v1', 'priorityclasses'],
  ['scheduling.k8s.io/v1alpha2', 'podgroups(status) workloads'],
  ['coordination.k8s.io/v1', 'leases'],
  ['coordination.k8s.io/v1beta1', 'leasecandidates'],
  ['coordination.k8s.io/v1alpha2', 'leasecandidates'],
  ['node.k8s.io/v1', 'runtimeclasses'],
  ['discovery.k8s.io/v1', 'endpointslices'],
  ['resource.k8s.io/v1', 'deviceclasses resourceclaims(status) resourceclaimtemplates resourceslices'],
  [
    'resource.k8s.io/v1beta2',
    'deviceclasses devicetaintrules(status) resourceclaims(status) resourceclaimtemplates resourceslices',
  ],
  ['resource.k8s.io/v1beta1', 'deviceclasses resourceclaims(status) resourceclaimtemplates resourceslices'],
  ['resource.k8s.io/v1alpha3', 'devicetaintrules(status) resourcepoolstatusrequests(status)'],
  ['flowcontrol.apiserver.k8s.io/v1', 'flowschemas(status) prioritylevelconfigurations(status)'],
  ['internal.apiserver.k8s.io/v1alpha1', 'storageversions(status)'],
  ['storagemigration.k8s.io/v1beta1', 'storageversionmigrations(status)'],
]

/** Those that need a gate besides. */
const GATED = /clustertrustbundles|podcertificaterequests|podgroups|workloads|storageversionmigrations/

type Json = Record<string, unknown>

interface Running {
  readonly log: () => string
  readonly get: (path: string, headers?: Record<string, string>) => Promise<Json>
  stop(): Promise<void>
}

const FLAGS = [
  '--datastore=memory',
  '--bind-address=127.0.0.1',
  '--secure-port=0',
  '--cert-dir=certs',
  '--token-auth-file=tokens',
  '--authorization-mode=RBAC',
  '--service-cluster-ip-range=10.0.0.0/24',
  '--service-account-issuer=https://localhost',
  '--service-account-key-file=sa.key',
  '--service-account-signing-key-file=sa.key',
]

async function start(dir: string, args: readonly string[]): Promise<Running> {
  const controller = new AbortController()
  const ready = Promise.withResolvers<string>()
  const stderr = new (class extends Collector {
    override _write(chunk: Buffer, encoding: string, done: () => void): void {
      super._write(chunk, encoding, done)
      const port = /Serving securely on 127\.0\.0\.1:(\d+)/.exec(this.text)?.[1]
      if (port !== undefined) ready.resolve(`https://127.0.0.1:${port}`)
    }
  })()
  const context = {
    path: ['kube-apiserver'],
    args: [...FLAGS, ...args],
    env: {},
    cwd: dir,
    stdin: () => process.stdin,
    stdout: new Collector(),
    stderr,
    clock: realClock,
    random: secureRandom,
    readFile: (path: string) => readFile(resolve(dir, path), 'utf8'),
  }
  const ended = apiserver.run(context, controller.signal)
  ended.then(
    (code) => ready.reject(new Error(`Ended with ${code}: ${stderr.text}`)),
    (error: unknown) => ready.reject(error as Error),
  )
  const url = await ready.promise
  const client: HttpClient = createHttpClient({ clock: realClock, tls: { insecure: true } })
  return {
    log: () => stderr.text,
    async get(path, headers = {}) {
      const answer = await client.request({ url: `${url}${path}`, headers: { authorization: 'Bearer t', ...headers } })
      assert.equal(answer.status, 200, path)
      return JSON.parse(await answer.text(1 << 22)) as Json
    },
    async stop() {
      client.close()
      controller.abort(new Error('SIGTERM'))
      await ended
    },
  }
}

interface Group {
  readonly name: string
  readonly versions: readonly { readonly groupVersion: string }[]
  readonly preferredVersion: { readonly groupVersion: string }
}

/** Every group version and its resources, from the documents that old clients read. */
async function readAll({ get }: Running): Promise<[string, string][]> {
  const { groups } = (await get('/apis')) as { groups: readonly Group[] }
  for (const { versions, preferredVersion } of groups) assert.deepEqual(preferredVersion, versions[0])
  const names = groups.flatMap(({ versions }) => versions.map(({ groupVersion }) => groupVersion))
  const rows: [string, string][] = []
  for (const name of ['v1', ...names]) {
    const { resources } = (await get(name === 'v1' ? '/api/v1' : `/apis/${name}`)) as {
      resources: readonly { readonly name: string }[]
    }
    rows.push([name, joined(resources.map((resource) => resource.name))])
  }
  return rows
}

interface AggregatedVersion {
  readonly version: string
  readonly resources: readonly {
    readonly resource: string
    readonly subresources?: readonly { readonly subresource: string }[]
  }[]
}

/** The same from the one document that new clients read. */
async function readAggregated({ get }: Running): Promise<[string, string][]> {
  const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
  const documents = (await Promise.all(['/api', '/apis'].map((path) => get(path, { accept })))) as {
    items: readonly { metadata: { name?: string }; versions: readonly AggregatedVersion[] }[]
  }[]
  return documents.flatMap(({ items }) =>
    items.flatMap(({ metadata: { name }, versions }) =>
      versions.map(({ version, resources }): [string, string] => {
        const all = resources.flatMap(({ resource, subresources = [] }) => [
          resource,
          ...subresources.map(({ subresource }) => `${resource}/${subresource}`),
        ])
        return [name === undefined ? version : `${name}/${version}`, joined(all)]
      }),
    ),
  )
}

function joined(names: readonly string[]): string {
  return names
    .filter((name) => !name.includes('/'))
    .map((name) => {
      const parts = names.filter((one) => one.startsWith(`${name}/`)).map((one) => one.slice(name.length + 1))
      return parts.length === 0 ? name : `${name}(${parts.join(',')})`
    })
    .join(' ')
}

function expected(isOn: (groupVersion: string, resource: string) => boolean): [string, string][] {
  return EVERYTHING.map(([name, text]): [string, string] => [
    name,
    text
      .split(/\s+/)
      .filter((resource) => isOn(name, resource))
      .join(' '),
  ]).filter(([, resources]) => resources !== '')
}

const isStable = (name: string): boolean => /^(?:.*\/)?v\d+$/.test(name)

describe('discovery of kube-apiserver', () => {
  const dir = mkdtempSync(join(tmpdir(), 'hyperkube-discovery-'))
  before(() => {
    writeFileSync(join(dir, 'sa.key'), keyToPem(createKey()))
    writeFileSync(join(dir, 'tokens'), 't,admin,admin,"system:masters"\n')
  })
  after(() => rmSync(dir, { recursive: true, force: true }))

  for (const [what, args, isOn] of [
    [
      'all resources with every gate and version',
      ['--runtime-config=api/all=true', '--feature-gates=AllAlpha=true,AllBeta=true'],
      () => true,
    ],
    ['stable resources by default', [], (name) => isStable(name)],
    [
      'all resources whose gate is on',
      ['--runtime-config=api/all=true'],
      (name, resource) => isStable(name) || !GATED.test(resource),
    ],
    [
      'single versions and resources',
      [
        '--runtime-config=coordination.k8s.io/v1beta1=true,scheduling.k8s.io/v1alpha2/workloads=true,apps/v1/daemonsets=false',
        '--feature-gates=GenericWorkload=true',
      ],
      (name, resource) =>
        name === 'coordination.k8s.io/v1beta1' ||
        resource === 'workloads' ||
        (isStable(name) && !resource.startsWith('daemonsets')),
    ],
  ] as readonly (readonly [string, readonly string[], (name: string, resource: string) => boolean])[]) {
    it(`lists ${what}`, async () => {
      const server = await start(dir, args)
      try {
        const wanted = expected(isOn)
        assert.deepEqual(await readAll(server), wanted)
        assert.deepEqual(await readAggregated(server), wanted)
      } finally {
        await server.stop()
      }
    })
  }

  it('logs API groups that a feature gate disables', async () => {
    const server = await start(dir, ['--runtime-config=scheduling.k8s.io/v1alpha2=true'])
    await server.stop()
    for (const kind of ['Workload', 'PodGroup']) {
      const line = `${kind} storage is disabled because the GenericWorkload feature gate is disabled`
      assert.ok(server.log().includes(line), line)
    }
  })

  it('refuses feature gates whose prerequisites are off', async () => {
    await assert.rejects(
      start(dir, ['--feature-gates=GangScheduling=true']),
      /GangScheduling is enabled, but depends on features that are disabled: \[GenericWorkload\]/,
    )
  })
})
