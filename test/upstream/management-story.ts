/**
 * Tests one management server with three kinds of clusters: imported, started by `hyperkube up`, and built over SSH:
 * `node test/upstream/management-story.ts`. A project member uses upstream's kubectl through the server and gets what
 * RBAC allows and nothing else. Then the server is killed: the clusters' own API servers must still accept the
 * server's tokens, and the agents must reconnect within ten seconds of the next start. Needs root.
 */
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { realClock } from '#lib/clock.ts'
import { stringifyYaml } from '#lib/yaml/write.ts'

import { makeMachines, type TestMachine } from './build/machines.ts'
import { startManager } from './components.ts'
import { end, freePort, launch } from './kube-apiserver.ts'
import { type ManagementServer, startManagementServer, type TestUser } from './management-server.ts'
import { ask, HYPERKUBE, writeKubeconfig } from './ours.ts'
import { upstreamPrograms } from './programs.ts'
import { type Reference, startReference } from './reference.ts'
import { mustBe, Shown, untilSo } from './shown.ts'

const run = promisify(execFile)
const BACK_SECONDS = 10
const BUILD_SECONDS = 600
const PROJECT_NAMESPACE = 'web'

interface Imported {
  readonly id: string
  readonly reference: Reference
  /** A kubeconfig of an administrator that leads straight to the API server. */
  readonly admin: string
}

interface Answered {
  readonly code: number
  readonly text: string
}

const shown = new Shown()
const folder = await mkdtemp(join(tmpdir(), 'hyperkube-story-'))
const closing = new AsyncDisposableStack()
const { kubectl } = await upstreamPrograms(['kubectl'], (line) => process.stderr.write(`${line}\n`))

async function kubectlWith(kubeconfig: string, ...args: readonly string[]): Promise<Answered> {
  try {
    const { stdout, stderr } = await run(kubectl, [`--kubeconfig=${kubeconfig}`, ...args], { maxBuffer: 1 << 26 })
    return { code: 0, text: stdout + stderr }
  } catch (error) {
    const { code, stdout, stderr } = error as { code: number; stdout: string; stderr: string }
    return { code, text: stdout + stderr }
  }
}

/** Upstream's kube-apiserver checks tokens of the server with `hyperkube kube-api-auth`. */
async function startImported(server: ManagementServer): Promise<Imported> {
  const authPort = await freePort()
  const own = join(folder, 'imported')
  await mkdir(own, { recursive: true })
  const webhook = join(own, 'webhook.kubeconfig')
  await writeFile(webhook, webhookConfig(authPort))
  const reference = await startReference(own, [
    `--authentication-token-webhook-config-file=${webhook}`,
    '--authentication-token-webhook-cache-ttl=1s',
    '--authentication-token-webhook-version=v1',
  ])
  closing.defer(() => reference.stop())
  const admin = await writeKubeconfig(join(own, 'admin.kubeconfig'), reference)
  const manager = await startManager(own, admin, { make: "upstream's" })
  closing.defer(() => end(manager, 'SIGTERM'))
  const args = [`--listen=127.0.0.1:${authPort}`, `--kubeconfig=${admin}`, `--cache-file=${join(own, 'auth.json')}`]
  const auth = await launch(HYPERKUBE, ['kube-api-auth', ...args], join(own, 'kube-api-auth.log'))
  closing.defer(() => end(auth, 'SIGTERM'))
  const id = await server.importAs('imported', admin)
  return { id, reference, admin }
}

function webhookConfig(port: number): string {
  return stringifyYaml({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'auth', cluster: { server: `http://127.0.0.1:${port}/v1/authenticate` } }],
    users: [{ name: 'auth' }],
    contexts: [{ name: 'auth', context: { cluster: 'auth', user: 'auth' } }],
    'current-context': 'auth',
  })
}

interface ClusterView {
  readonly metadata: { readonly name: string }
  readonly status?: {
    readonly nodes?: { readonly total: number; readonly ready: number }
    readonly conditions?: readonly { readonly type: string; readonly status: string; readonly message: string }[]
  }
}

function isTrue({ status }: ClusterView, type: string): boolean {
  return status?.conditions?.some((one) => one.type === type && one.status === 'True') === true
}

async function clusterIs(
  server: ManagementServer,
  id: string,
  types: readonly string[],
  seconds = 60,
): Promise<number> {
  const read = async (): Promise<ClusterView> => (await server.request('GET', `/v3/clusters/${id}`)) as ClusterView
  return untilSo(read, (view) => types.every((type) => isTrue(view, type)), seconds)
}

async function createCluster(server: ManagementServer, body: object): Promise<string> {
  const made = (await server.request('POST', '/v3/clusters', body)) as { readonly cluster: ClusterView }
  return made.cluster.metadata.name
}

async function startDev(server: ManagementServer): Promise<string> {
  const id = await createCluster(server, { displayName: 'dev', source: 'up', nodes: 3 })
  closing.defer(() => server.request('DELETE', `/v3/clusters/${id}`).then(() => undefined))
  await clusterIs(server, id, ['Running', 'Ready', 'RolesApplied'])
  return id
}

interface Machines {
  readonly machines: readonly TestMachine[]
  /** The file with the private key that they admit. */
  readonly key: string
}

/** Three machines with control plane and etcd, and three workers. */
async function build(server: ManagementServer, { machines, key }: Machines): Promise<string> {
  const nodes = machines.map(({ name, address }, at) => ({
    address,
    user: 'root',
    hostname_override: name,
    role: at < 3 ? ['controlplane', 'etcd'] : ['worker'],
  }))
  const none = { provider: 'none' }
  const file = stringifyYaml({ nodes, network: { plugin: 'flannel' }, ingress: none, monitoring: none, dns: none })
  const body = {
    displayName: 'built',
    source: 'built',
    approval: 'Automatic',
    file,
    sshKey: await readFile(key, 'utf8'),
  }
  const id = await createCluster(server, body)
  await clusterIs(server, id, ['Provisioned', 'Connected', 'Ready', 'RolesApplied'], BUILD_SECONDS)
  return id
}

const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete']
const RESOURCES = [
  ['', 'pods'],
  ['', 'pods/exec'],
  ['', 'secrets'],
  ['', 'configmaps'],
  ['', 'serviceaccounts'],
  ['', 'nodes'],
  ['', 'namespaces'],
  ['apps', 'deployments'],
  ['batch', 'jobs'],
  ['rbac.authorization.k8s.io', 'rolebindings'],
  ['rbac.authorization.k8s.io', 'clusterroles'],
] as const

const ATTRIBUTES = [PROJECT_NAMESPACE, 'default', 'kube-system', ''].flatMap((namespace) =>
  RESOURCES.flatMap(([group, text]) => {
    const [resource = '', subresource = ''] = text.split('/')
    return VERBS.map((verb) => ({ verb, group, resource, subresource, namespace }))
  }),
)

/**
 * Reviews every verb, resource and namespace through the server as the member, and straight at the API server for the group
 * of the role. Returns the differences and the number of allowed combinations.
 */
async function compareRights(
  server: ManagementServer,
  member: TestUser,
  { id, reference }: Imported,
  group: string,
): Promise<[differences: string[], allowed: number]> {
  const head = { apiVersion: 'authorization.k8s.io/v1' }
  const path = '/apis/authorization.k8s.io/v1'
  const differences: string[] = []
  let allowed = 0
  for (const resourceAttributes of ATTRIBUTES) {
    const own = { ...head, kind: 'SelfSubjectAccessReview', spec: { resourceAttributes } }
    const through = `/k8s/clusters/${id}${path}/selfsubjectaccessreviews`
    const { status: found } = (await server.requestAs(member, through, own)) as Review
    const spec = { user: 'u-any', groups: [group, 'system:authenticated'], resourceAttributes }
    const body = { ...head, kind: 'SubjectAccessReview', spec }
    const { status: wanted } = (await ask(reference, { method: 'POST', path: `${path}/subjectaccessreviews`, body }))
      .body as Review
    if (found.allowed) allowed++
    if (found.allowed !== wanted.allowed) differences.push(JSON.stringify(resourceAttributes))
  }
  return [differences, allowed]
}

interface Review {
  readonly status: { readonly allowed: boolean }
}

/** kubectl lines of the member, and what each must print. */
const LINES: readonly (readonly [line: string, expected: RegExp])[] = [
  [`create deployment web --image=nginx -n ${PROJECT_NAMESPACE}`, /deployment\.apps\/web created/],
  [`get deployments -n ${PROJECT_NAMESPACE}`, /web/],
  [`create configmap a --from-literal=b=c -n ${PROJECT_NAMESPACE}`, /configmap\/a created/],
  [`get namespace ${PROJECT_NAMESPACE}`, /Active/],
  ['get configmaps -n default', /is forbidden: User/],
  ['get secrets -A', /is forbidden: User/],
  ['get nodes', /is forbidden: User/],
  ['create namespace other', /is forbidden: User/],
  [`create rolebinding own --clusterrole=cluster-admin --user=me -n ${PROJECT_NAMESPACE}`, /is forbidden: User/],
  ['get pods -n kube-system --as=system:admin', /Forbidden|forbidden/],
  [`get pods -n ${PROJECT_NAMESPACE} --as=u-other --as-group=system:masters`, /Forbidden|forbidden/],
]

async function checkMember(server: ManagementServer, imported: Imported, others: readonly string[]): Promise<string> {
  const { id } = imported
  const made = (await server.request('POST', `/v3/clusters/${id}/projects`, {
    displayName: 'shop',
    namespaces: [PROJECT_NAMESPACE],
  })) as ClusterView
  const project = made.metadata.name
  const member = await server.createUser('jane')
  const role = { role: 'project-member', user: member.name, project }
  await server.request('POST', `/v3/clusters/${id}/members`, role)
  const kubeconfig = await server.kubeconfigOf(id, member)
  // The roles of a new project reach the cluster through its agent.
  await untilSo(
    () => kubectlWith(kubeconfig, 'auth', 'can-i', 'create', 'pods', '-n', PROJECT_NAMESPACE),
    ({ text }) => /^yes/m.test(text),
  )
  for (const [line, expected] of LINES) {
    const { text } = await kubectlWith(kubeconfig, ...line.split(' '))
    mustBe(expected.test(text), `kubectl ${line}: ${text}`)
  }
  for (const other of others) {
    const status = await server.statusOf('GET', `/k8s/clusters/${other}/api/v1/pods`, member.token)
    mustBe(status === 404, `the member got ${status} from another cluster`)
  }
  const [differences, allowed] = await compareRights(server, member, imported, `hk:project:${project}:project-member`)
  mustBe(differences.length === 0, `differs from RBAC: ${differences.join(', ')}`)
  return `${LINES.length} lines, ${allowed} of ${ATTRIBUTES.length} combinations allowed, as RBAC says`
}

/** The context of the authorized endpoint. */
function contextOf({ port }: Reference): string {
  return `--context=imported-127.0.0.1:${port}`
}

async function enableEndpoint(server: ManagementServer, { id, reference }: Imported): Promise<string> {
  const authorizedEndpoint = {
    enabled: true,
    addresses: [`127.0.0.1:${reference.port}`],
    certificateAuthority: reference.tls.ca,
  }
  const path = `/k8s/clusters/local/apis/management.hyperkube.io/v1/clusters/${id}`
  await server.patch(path, { spec: { authorizedEndpoint } })
  const member = await server.createUser('john')
  await server.request('POST', `/v3/clusters/${id}/members`, { role: 'cluster-read-only', user: member.name })
  const kubeconfig = await server.kubeconfigOf(id, member)
  await clusterIs(server, id, ['TokensApplied'])
  // The condition was true before the token of the kubeconfig existed.
  await untilSo(
    () => kubectlWith(kubeconfig, contextOf(reference), 'get', 'configmaps'),
    ({ code }) => code === 0,
  )
  return kubeconfig
}

async function makeClusters(server: ManagementServer, machines: Machines): Promise<Made> {
  let imported: Imported | undefined
  const others: string[] = []
  await shown.step("imports upstream's kube-apiserver", async () => {
    imported = await startImported(server)
    await kubectlWith(imported.admin, 'create', 'namespace', PROJECT_NAMESPACE)
    return imported.id
  })
  await shown.step('starts a cluster of hyperkube up with three nodes', async () => {
    others.push(await startDev(server))
    return others.at(-1) ?? ''
  })
  await shown.step('builds three control planes and three workers over SSH', async () => {
    const id = await build(server, machines)
    others.push(id)
    const read = async (): Promise<ClusterView> => (await server.request('GET', `/v3/clusters/${id}`)) as ClusterView
    await untilSo(read, ({ status }) => status?.nodes?.ready === machines.machines.length)
    return `${machines.machines.length} nodes are ready`
  })
  if (imported === undefined) throw new Error('The imported cluster is needed for the next steps')
  return { imported, others }
}

interface Made {
  readonly imported: Imported
  readonly others: readonly string[]
}

async function killServer(server: ManagementServer, { imported, others }: Made, kubeconfig: string): Promise<void> {
  const direct = (...args: readonly string[]): Promise<Answered> =>
    kubectlWith(kubeconfig, contextOf(imported.reference), `--namespace=${PROJECT_NAMESPACE}`, ...args)
  await shown.step('answers on the authorized endpoint while the server is killed', async () => {
    await server.kill()
    const { text } = await direct('get', 'deployments')
    mustBe(/^web /m.test(text), text)
    const refused = await direct('create', 'configmap', 'x')
    mustBe(refused.text.includes('Forbidden') || refused.text.includes('forbidden'), refused.text)
    return ''
  })
  await shown.step(`has all clusters back within ${BACK_SECONDS} s of the next start`, async () => {
    await server.start()
    const began = realClock.elapsed()
    for (const id of [imported.id, ...others])
      await untilSo(
        () => server.statusOf('GET', `/k8s/clusters/${id}/version`),
        (status) => status === 200,
        BACK_SECONDS,
      )
    return `${((realClock.elapsed() - began) / 1000).toFixed(1)} s`
  })
}

async function story(): Promise<void> {
  const own = join(folder, 'machines')
  await mkdir(own, { recursive: true })
  const machines = await makeMachines(own, 6, closing)
  // The address of this machine on the bridge of the others.
  const host = machines.machines[0]?.address.replace(/\.\d+$/, '.1') ?? ''
  const server = closing.use(await startManagementServer(join(folder, 'server'), { host }))
  const made = await makeClusters(server, machines)
  await shown.step('gives a member of a project what RBAC allows and nothing else', () =>
    checkMember(server, made.imported, made.others),
  )
  let kubeconfig = ''
  await shown.step('adds a context of the authorized endpoint to kubeconfigs', async () => {
    kubeconfig = await enableEndpoint(server, made.imported)
    return (await kubectlWith(kubeconfig, 'config', 'get-contexts', '-o', 'name')).text.trim().replace('\n', ', ')
  })
  await killServer(server, made, kubeconfig)
}

try {
  await story()
} finally {
  await closing.disposeAsync()
  await rm(folder, { recursive: true, force: true })
}
process.exitCode = shown.end()
