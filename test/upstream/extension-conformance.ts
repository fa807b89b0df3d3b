/**
 * Runs upstream's conformance tests of aggregation and webhooks without containers: `node
 * test/upstream/extension-conformance.ts [focus]`. The controller manager and the scheduler are upstream's. A fake
 * kubelet reports running pods. It starts the tests' sample-apiserver and webhooks as local processes, with the
 * certificates in the pods' Secrets. Needs Go, etcd, and root to add an address.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { realClock, sleep } from '#lib/clock.ts'

import { startComponents } from './components.ts'
import { startEtcd } from './etcd.ts'
import { end, frontProxyFlags, launch } from './kube-apiserver.ts'
import { ask, type Server, startOurs, writeKubeconfig } from './ours.ts'
import { missingGo, upstreamPath, upstreamPrograms } from './programs.ts'
import { changeAddress, launchSample, OWN_ADDRESS, writeAccount } from './sample-apiserver.ts'

const NEEDED = ['sample-apiserver', 'agnhost', 'e2e.test', 'kube-controller-manager', 'kube-scheduler'] as const
const FOCUS =
  'Aggregator Should be able to support|AdmissionWebhook.*Conformance|CustomResourceConversionWebhook.*Conformance'
const ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount'
/** Where the pods of webhooks have their certificates. */
const CERTIFICATES = '/webhook.local.config/certificates'
const NODE = 'stand-in'
const LOOK_EVERY_MS = 300
const RESTART_MS = 1000

// oxlint-disable-next-line typescript/no-explicit-any -- answers are looked into, not relied upon
type Json = any

/** A cluster whose only pods that do anything are those of the sample and of webhooks. */
class StandIn {
  readonly #server: Server
  readonly #folder: string
  readonly #over = new AbortController()
  #programs: ChildProcess[] = []
  /** By the uid of the pod. */
  readonly #webhooks = new Map<string, ChildProcess>()

  constructor(server: Server, folder: string) {
    this.#server = server
    this.#folder = folder
  }

  async #call(method: string, path: string, body?: object): Promise<Json> {
    return (await ask(this.#server, { method, path, body })).body
  }

  async run(): Promise<void> {
    const capacity = { cpu: '64', memory: '256Gi', pods: '500' }
    await this.#call('POST', '/api/v1/nodes', { metadata: { name: NODE } })
    while (!this.#over.signal.aborted) {
      const now = new Date(realClock.now()).toISOString()
      const ready = { type: 'Ready', status: 'True', reason: 'StandIn', lastHeartbeatTime: now }
      const status = { capacity, allocatable: capacity, conditions: [ready] }
      await this.#call('PATCH', `/api/v1/nodes/${NODE}/status`, { status })
      const { items } = await this.#call('GET', `/api/v1/pods?fieldSelector=spec.nodeName%3D${NODE}`)
      for (const pod of items) await this.#tend(pod)
      await sleep(realClock, LOOK_EVERY_MS)
    }
  }

  async stop(): Promise<void> {
    this.#over.abort()
    const all = [...this.#programs, ...this.#webhooks.values()]
    await Promise.all(all.map((program) => end(program, 'SIGKILL')))
  }

  async #tend({ metadata, spec, status }: Json): Promise<void> {
    const path = `/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}`
    if (metadata.deletionTimestamp !== undefined) {
      const webhook = this.#webhooks.get(metadata.uid)
      if (webhook !== undefined) await end(webhook, 'SIGKILL')
      return this.#call('DELETE', path, { gracePeriodSeconds: 0 })
    }
    if (status.phase !== 'Pending') return
    if (metadata.labels?.apiserver === 'true') await this.#runSample(metadata.namespace)
    const isWebhook = ({ args = [] }: Json): boolean => ['webhook', 'crd-conversion-webhook'].includes(args[0])
    for (const { args } of (spec.containers as Json[]).filter(isWebhook)) await this.#runWebhook(metadata, spec, args)
    const types = ['Ready', 'ContainersReady', 'Initialized', 'PodScheduled']
    const containers = (spec.containers as Json[]).map(({ name, image }) => ({
      name,
      image,
      imageID: image,
      ready: true,
    }))
    const running = {
      phase: 'Running',
      conditions: types.map((type) => ({ type, status: 'True' })),
      podIP: OWN_ADDRESS,
      podIPs: [{ ip: OWN_ADDRESS }],
      containerStatuses: containers.map((one) => ({ ...one, restartCount: 0, state: { running: {} } })),
    }
    await this.#call('PATCH', `${path}/status`, { status: running })
  }

  async #runWebhook({ namespace, uid }: Json, { volumes }: Json, args: readonly string[]): Promise<void> {
    const folder = join(this.#folder, uid)
    await mkdir(folder)
    const { secretName } = (volumes as Json[]).find(({ secret }) => secret !== undefined).secret
    const { data } = await this.#call('GET', `/api/v1/namespaces/${namespace}/secrets/${secretName}`)
    for (const [name, text] of Object.entries<string>(data)) {
      await writeFile(join(folder, name), Buffer.from(text, 'base64'), { mode: 0o600 })
    }
    const own = args.map((arg) => arg.replace(CERTIFICATES, folder))
    // All have the same address and port; tests come one after the other, and their pods go when they are over.
    await Promise.all(Array.from(this.#webhooks.values(), (webhook) => end(webhook, 'SIGKILL')))
    await this.#pretendCluster(namespace)
    this.#webhooks.set(uid, await launch(upstreamPath('agnhost'), own, join(folder, 'log')))
    // Waits until the webhook listens, because no kubelet probes it.
    await sleep(realClock, RESTART_MS)
  }

  /** Programs in pods find the server by their environment, and their account in files at a fixed place. */
  async #pretendCluster(namespace: string): Promise<void> {
    Object.assign(process.env, {
      KUBERNETES_SERVICE_HOST: '127.0.0.1',
      KUBERNETES_SERVICE_PORT: `${this.#server.port}`,
    })
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/default/token`
    const { status } = await this.#call('POST', path, { spec: {} })
    await mkdir(ACCOUNT, { recursive: true })
    await writeFile(join(ACCOUNT, 'token'), status.token, { mode: 0o600 })
    await writeFile(join(ACCOUNT, 'ca.crt'), this.#server.tls.ca)
  }

  async #runSample(namespace: string): Promise<void> {
    const { data } = await this.#call('GET', `/api/v1/namespaces/${namespace}/secrets/sample-apiserver-secret`)
    const text = (name: string): string => Buffer.from(data[name], 'base64').toString()
    const folder = this.#folder
    const kubeconfig = await writeAccount(this.#server, namespace, 'default', join(folder, 'account.yaml'))
    const etcd = await startEtcd(folder)
    this.#programs.push(etcd.program)
    const serving = { certificate: text('tls.crt'), key: text('tls.key') }
    const plan = { folder, kubeconfig, serving, host: OWN_ADDRESS, port: 443, etcd: etcd.url }
    void this.#keepRunning(plan)
  }

  /** It ends while it may not yet read what it needs. */
  async #keepRunning(plan: Parameters<typeof launchSample>[1]): Promise<void> {
    while (!this.#over.signal.aborted) {
      const program = await launchSample(upstreamPath('sample-apiserver'), plan)
      this.#programs = [...this.#programs, program]
      await once(program, 'exit')
      await sleep(realClock, RESTART_MS)
    }
  }
}

/** Runs the suite and returns its exit code. */
async function judge(folder: string, kubeconfig: string, focus: string): Promise<number> {
  const flags = [
    '--provider=skeleton',
    `--kubeconfig=${kubeconfig}`,
    '--allowed-not-ready-nodes=-1',
    '--minStartupPods=-1',
    '--num-nodes=1',
    '--disable-log-dump',
    '--ginkgo.no-color',
    '--ginkgo.timeout=20m',
    '--ginkgo.skip=\\[Serial\\]',
    `--ginkgo.focus=${focus}`,
  ]
  const suite = spawn(upstreamPath('e2e.test'), flags, { stdio: 'inherit', cwd: folder })
  const [code] = (await once(suite, 'exit')) as [number | null]
  return code ?? 1
}

function findObstacle(): string | undefined {
  const missing = missingGo(NEEDED)
  if (missing !== undefined) return missing
  return changeAddress('add')
    ? undefined
    : 'this machine cannot be given an address (root and the program "ip" are needed)'
}

async function main(focus = FOCUS): Promise<number> {
  const obstacle = findObstacle()
  if (obstacle !== undefined) {
    process.stdout.write(`not run: ${obstacle}\n`)
    return 1
  }
  let code = 1
  await using closing = new AsyncDisposableStack()
  closing.defer(() => void changeAddress('del'))
  closing.defer(() => rm(ACCOUNT, { recursive: true, force: true }))
  await upstreamPrograms(NEEDED, (line) => process.stderr.write(`${line}\n`))
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-aggregator-'))
  closing.defer(() => (code === 0 ? rm(folder, { recursive: true, force: true }) : undefined))
  const server = await startOurs(folder, frontProxyFlags(folder))
  closing.defer(() => server.stop())
  const kubeconfig = await writeKubeconfig(join(folder, 'kubeconfig'), server)
  for (const program of (await startComponents(folder, kubeconfig)).values())
    closing.defer(() => end(program, 'SIGKILL'))
  const standIn = new StandIn(server, folder)
  const running = standIn.run()
  closing.defer(async () => {
    await standIn.stop()
    await running
  })
  code = await judge(folder, kubeconfig, focus)
  if (code !== 0) process.stdout.write(`logs are in ${folder}\n`)
  return code
}

process.exitCode = await main(process.argv[2])
