/**
 * Runs upstream's sample-apiserver behind our server: `node test/upstream/aggregation.ts`. It delegates authentication
 * and authorization to our server with the permissions of its documentation, and kubectl uses its flunders like other
 * resources. Needs etcd, and Go to build the server once. Prints each step; the log of a failed run is kept.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { realClock, sleep } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'
import { createAuthority } from '#lib/x509/authority.ts'

import { startEtcd } from './etcd.ts'
import { end, freePort, frontProxyFlags } from './kube-apiserver.ts'
import { ask, type Server, startOurs, writeKubeconfig } from './ours.ts'
import { missingGo, upstreamPrograms } from './programs.ts'
import { changeAddress, launchSample, OWN_ADDRESS, writeAccount } from './sample-apiserver.ts'

const NEEDED = ['sample-apiserver', 'kubectl'] as const
const GROUP = 'wardle.example.com'
const VERSIONS = ['v1alpha1', 'v1beta1']

// oxlint-disable-next-line typescript/no-explicit-any -- answers are looked into, not relied upon
type Json = any

type Kubectl = (args: string, input?: string) => string

async function must(server: Server, method: string, path: string, body?: object): Promise<Json> {
  const { status, body: answer } = await ask(server, { method, path, body })
  if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(answer)}`)
  return answer
}

/** Creates the RBAC objects of the sample's documentation. */
async function giveRights(server: Server): Promise<void> {
  const apiGroup = 'rbac.authorization.k8s.io'
  const rbac = `/apis/${apiGroup}/v1`
  const subjects = [{ kind: 'ServiceAccount', name: 'apiserver', namespace: 'wardle' }]
  const bind = (name: string, kind: string, role: string): object => ({
    metadata: { name },
    roleRef: { apiGroup, kind, name: role },
    subjects,
  })
  await must(server, 'POST', '/api/v1/namespaces', { metadata: { name: 'wardle' } })
  await must(server, 'POST', '/api/v1/namespaces/wardle/serviceaccounts', { metadata: { name: 'apiserver' } })
  await must(server, 'POST', `${rbac}/clusterroles`, {
    metadata: { name: 'wardle' },
    rules: [
      { apiGroups: [''], resources: ['namespaces'], verbs: ['get', 'watch', 'list'] },
      { apiGroups: ['admissionregistration.k8s.io'], resources: ['*'], verbs: ['get', 'watch', 'list'] },
      { apiGroups: ['flowcontrol.apiserver.k8s.io'], resources: ['*'], verbs: ['list', 'watch'] },
    ],
  })
  await must(server, 'POST', `${rbac}/clusterrolebindings`, bind('wardle', 'ClusterRole', 'wardle'))
  await must(server, 'POST', `${rbac}/clusterrolebindings`, bind('wardle-auth', 'ClusterRole', 'system:auth-delegator'))
  const reader = bind('wardle', 'Role', 'extension-apiserver-authentication-reader')
  await must(server, 'POST', `${rbac}/namespaces/kube-system/rolebindings`, reader)
}

interface Sample {
  readonly port: number
  readonly caBundle: string
  readonly programs: readonly ChildProcess[]
}

async function startSample(program: string, folder: string, kubeconfig: string, host: string): Promise<Sample> {
  const authority = createAuthority({ commonName: 'wardle-ca' }, { clock: realClock, random: secureRandom })
  const names = { dns: ['api.wardle.svc'] }
  const shown = authority.issue({ commonName: 'api.wardle.svc', names, purpose: 'server' })
  const serving = { certificate: shown.certificatePem, key: shown.keyPem }
  const port = await freePort()
  const etcd = await startEtcd(folder)
  const sample = await launchSample(program, { folder, kubeconfig, serving, host, port, etcd: etcd.url })
  return { port, caBundle: Buffer.from(authority.certificatePem).toString('base64'), programs: [sample, etcd.program] }
}

/** A Service without selector that leads there; where that cannot be had, one that is the name of this machine. */
async function announce(server: Server, { port, caBundle }: Sample, host: string): Promise<void> {
  const isOwn = host === OWN_ADDRESS
  const servicePort = isOwn ? 7443 : port
  const external = { type: 'ExternalName', externalName: 'localhost' }
  await must(server, 'POST', '/api/v1/namespaces/wardle/services', {
    metadata: { name: 'api' },
    spec: isOwn ? { ports: [{ port: servicePort, targetPort: port }] } : external,
  })
  if (isOwn) {
    await must(server, 'POST', '/apis/discovery.k8s.io/v1/namespaces/wardle/endpointslices', {
      metadata: { name: 'api', labels: { 'kubernetes.io/service-name': 'api' } },
      addressType: 'IPv4',
      endpoints: [{ addresses: [host] }],
      ports: [{ name: '', port }],
    })
  }
  for (const [at, version] of VERSIONS.entries()) {
    await must(server, 'POST', '/apis/apiregistration.k8s.io/v1/apiservices', {
      metadata: { name: `${version}.${GROUP}` },
      spec: {
        group: GROUP,
        version,
        groupPriorityMinimum: 2000,
        versionPriority: 200 - at,
        caBundle,
        service: { namespace: 'wardle', name: 'api', port: servicePort },
      },
    })
  }
}

async function untilAvailable(server: Server): Promise<void> {
  const path = `/apis/apiregistration.k8s.io/v1/apiservices/${VERSIONS[0]}.${GROUP}`
  for (let look = 0; ; look++) {
    const { status } = await must(server, 'GET', path)
    const [condition] = status.conditions ?? []
    if (condition?.status === 'True') return
    if (look === 600) throw new Error(`not available: ${JSON.stringify(condition)}`)
    await sleep(realClock, 100)
  }
}

const FLUNDER = (name: string, extra = ''): string =>
  `apiVersion: ${GROUP}/v1alpha1\nkind: Flunder\nmetadata:\n  name: ${name}\n  labels: {sample: "true"}\n${extra}`

function expect(text: string, pattern: RegExp): void {
  if (!pattern.test(text)) throw new Error(`expected ${pattern}, got: ${text}`)
}

/** The kubectl commands and their expected output. */
const STEPS: readonly (readonly [what: string, run: (kubectl: Kubectl) => void])[] = [
  [
    'lists its resources',
    (kubectl) => expect(kubectl(`api-resources --api-group=${GROUP}`), /flunders.*true *Flunder/),
  ],
  ['creates', (kubectl) => expect(kubectl('create -f -', FLUNDER('one')), /flunder.*one created/)],
  ['gets a table', (kubectl) => expect(kubectl('get flunders'), /^NAME +CREATED AT\none +20/)],
  ['gets YAML', (kubectl) => expect(kubectl('get flunder one -o yaml'), /uid: [\da-f-]{36}/)],
  ['applies', (kubectl) => expect(kubectl('apply -f -', FLUNDER('two')), /two created/)],
  [
    'applies a change',
    (kubectl) => expect(kubectl('apply -f -', FLUNDER('two', 'spec: {reference: x}\n')), /two configured/),
  ],
  [
    'applies on the server',
    (kubectl) =>
      expect(kubectl('apply --server-side -f -', FLUNDER('three', 'spec: {reference: other}\n')), /serverside-applied/),
  ],
  [
    'refuses unknown fields',
    (kubectl) => expect(kubectl('apply -f -', FLUNDER('two', 'nonsense: 1\n')), /unknown field "nonsense"/),
  ],
  ['explains', (kubectl) => expect(kubectl('explain flunders.spec'), /KIND: +Flunder[^]*reference\s+<string>/)],
  ['patches', (kubectl) => expect(kubectl(`patch flunder one --type=merge -p {"spec":{"reference":"z"}}`), /patched/)],
  [
    'labels and selects',
    (kubectl) => expect(`${kubectl('label flunder one a=b')}${kubectl('get flunders -l a=b')}`, /\none /),
  ],
  ['reads another version', (kubectl) => expect(kubectl(`get flunders.v1beta1.${GROUP} one -o yaml`), /v1beta1/)],
  ['asks what it may', (kubectl) => expect(kubectl(`auth can-i list flunders.${GROUP}`), /^yes/)],
  ['waits for what goes', (kubectl) => expect(kubectl('delete flunder three --timeout=20s'), /deleted/)],
  ['deletes all', (kubectl) => expect(kubectl('delete flunders --all'), /one.*deleted[^]*two.*deleted/)],
]

/** Events of a watch through both servers, while something happens. */
async function watches(path: string, kubeconfig: string, kubectl: Kubectl): Promise<void> {
  const watch = spawn(path, ['--kubeconfig', kubeconfig, 'get', 'flunders', '-w', '--output-watch-events'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  let seen = ''
  watch.stdout.on('data', (piece: Buffer) => (seen += piece.toString()))
  const until = async (pattern: RegExp): Promise<void> => {
    for (let look = 0; !pattern.test(seen); look++) {
      if (look === 200) throw new Error(`a watch that shows ${pattern} showed: ${seen}`)
      await sleep(realClock, 100)
    }
  }
  try {
    await until(/EVENT|^/)
    kubectl('create -f -', FLUNDER('seen'))
    await until(/ADDED +seen/)
    kubectl('delete flunder seen')
    await until(/DELETED +seen/)
  } finally {
    await end(watch, 'SIGTERM')
  }
}

async function tryAll(path: string, kubeconfig: string): Promise<number> {
  const kubectl: Kubectl = (args, input) => {
    const all = ['--kubeconfig', kubeconfig, ...args.split(' ')]
    const { stdout, stderr } = spawnSync(path, all, { encoding: 'utf8', ...(input !== undefined && { input }) })
    return stdout + stderr
  }
  let failures = 0
  const tell = (what: string, error?: unknown): void => {
    if (error !== undefined) failures++
    const why = error === undefined ? '' : `: ${(error as Error).message}`
    process.stdout.write(`${error === undefined ? '✔' : '✖'} kubectl ${what}${why}\n`)
  }
  const attempt = async (what: string, run: () => void | Promise<void>): Promise<void> => {
    try {
      await run()
      tell(what)
    } catch (error) {
      tell(what, error)
    }
  }
  for (const [what, run] of STEPS) await attempt(what, () => run(kubectl))
  await attempt('watches', () => watches(path, kubeconfig, kubectl))
  process.stdout.write(`${STEPS.length + 1} steps with kubectl, ${failures} failed\n`)
  return failures
}

async function main(): Promise<number> {
  const missing = missingGo(NEEDED)
  if (missing !== undefined) {
    process.stdout.write(`not run: ${missing}\n`)
    return 1
  }
  const programs = await upstreamPrograms(NEEDED, (line) => process.stderr.write(`${line}\n`))
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-aggregation-'))
  let failures = 1
  await using closing = new AsyncDisposableStack()
  closing.defer(() => (failures === 0 ? rm(folder, { recursive: true, force: true }) : undefined))
  const host = changeAddress('add') ? OWN_ADDRESS : '127.0.0.1'
  closing.defer(() => void (host === OWN_ADDRESS && changeAddress('del')))
  const server = await startOurs(folder, frontProxyFlags(folder))
  closing.defer(() => server.stop())
  await giveRights(server)
  const account = await writeAccount(server, 'wardle', 'apiserver', join(folder, 'account.yaml'))
  const sample = await startSample(programs['sample-apiserver'], folder, account, host)
  for (const program of sample.programs) closing.defer(() => end(program, 'SIGKILL'))
  await announce(server, sample, host)
  await untilAvailable(server)
  const kubeconfig = await writeKubeconfig(join(folder, 'kubeconfig'), server)
  failures = await tryAll(programs.kubectl, kubeconfig)
  if (failures > 0) process.stderr.write(`The logs are in ${folder}\n`)
  return failures === 0 ? 0 : 1
}

process.exitCode = await main()
