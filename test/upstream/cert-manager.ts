/**
 * Runs cert-manager's programs against our server: `node test/upstream/cert-manager.ts`. The cainjector must set the CA
 * of the webhook configurations. The controller must issue a self-signed CA and a certificate. The webhook, behind a
 * Service without selector, must refuse an invalid certificate. Needs Go to build them once, and root to add an
 * address.
 */
import { type ChildProcess, spawnSync } from 'node:child_process'
import { cpSync, existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'

import { load as parseYaml } from 'js-yaml'

import { realClock, sleep } from '#lib/clock.ts'

import { end, freePort, launch } from './kube-apiserver.ts'
import { ask, type Server, startOurs, writeKubeconfig } from './ours.ts'
import { changeAddress, OWN_ADDRESS } from './sample-apiserver.ts'

/** The last version whose programs are in the module that the proxy has. */
const MODULE = 'github.com/cert-manager/cert-manager@v1.11.5'
const FOLDER = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'hyperkube', 'cert-manager')
const PROGRAMS = ['controller', 'cainjector', 'webhook'] as const
const NAMESPACE = 'cert-manager'
const WEBHOOK = 'cert-manager-webhook'
const PATIENCE_MS = 120_000

// oxlint-disable-next-line typescript/no-explicit-any -- answers are looked into, not relied upon
type Json = any

/** Builds the programs where they are not there yet; returns the folder of the sources. */
function build(): string {
  const env = { ...process.env, GOFLAGS: '-mod=mod', GONOSUMDB: '*' }
  const done = spawnSync('go', ['mod', 'download', '-json', MODULE], { cwd: tmpdir(), env, encoding: 'utf8' })
  const { Dir: sources } = JSON.parse(done.stdout || '{}') as { Dir?: string }
  if (sources === undefined) throw new Error(`${MODULE} cannot be had: ${done.stderr}`)
  if (PROGRAMS.every((name) => existsSync(join(FOLDER, name)))) return sources
  const copy = join(FOLDER, 'sources')
  cpSync(sources, copy, { recursive: true })
  spawnSync('chmod', ['-R', 'u+w', copy])
  for (const name of PROGRAMS) {
    const args = ['build', '-o', join(FOLDER, name), `./cmd/${name}`]
    if (spawnSync('go', args, { cwd: copy, env, stdio: 'inherit' }).status !== 0)
      throw new Error(`${name} was not built`)
  }
  return sources
}

async function must(server: Server, method: string, path: string, body?: object): Promise<Json> {
  const { status, body: answer } = await ask(server, { method, path, body })
  if (status >= 300) throw new Error(`${method} ${path}: ${status} ${JSON.stringify(answer)}`)
  return answer
}

async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const startMs = realClock.elapsed()
  while (!(await isSo())) {
    if (realClock.elapsed() - startMs > PATIENCE_MS) throw new Error(`Not within ${PATIENCE_MS / 1000} s: ${what}`)
    await sleep(realClock, 250)
  }
  process.stdout.write(`ok  ${what} (${Math.round(realClock.elapsed() - startMs)} ms)\n`)
}

/** As its chart has them, without the chart. */
async function define(server: Server, sources: string): Promise<void> {
  const folder = join(sources, 'deploy/crds')
  for (const name of readdirSync(folder).filter((file) => file.endsWith('.yaml'))) {
    const lines = readFileSync(join(folder, name), 'utf8').split('\n')
    const plain = lines.filter((line) => !line.includes('{{')).join('\n')
    await must(server, 'POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', parseYaml(plain) as object)
  }
  const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
  await until('its definitions are established', async () => {
    const { items } = await must(server, 'GET', definitions)
    const isEstablished = ({ status }: Json): boolean =>
      status.conditions?.some(({ type, status: is }: Json) => type === 'Established' && is === 'True')
    return items.length > 0 && items.every(isEstablished)
  })
}

async function announce(server: Server, port: number): Promise<void> {
  const at = `/api/v1/namespaces/${NAMESPACE}`
  await must(server, 'POST', `${at}/services`, { metadata: { name: WEBHOOK }, spec: { ports: [{ port: 443 }] } })
  await must(server, 'POST', `/apis/discovery.k8s.io/v1/namespaces/${NAMESPACE}/endpointslices`, {
    metadata: { name: WEBHOOK, labels: { 'kubernetes.io/service-name': WEBHOOK } },
    addressType: 'IPv4',
    endpoints: [{ addresses: [OWN_ADDRESS] }],
    ports: [{ port }],
  })
  const hook = (path: string): object => ({
    name: 'webhook.cert-manager.io',
    rules: [
      {
        apiGroups: ['cert-manager.io', 'acme.cert-manager.io'],
        apiVersions: ['v1'],
        operations: ['CREATE', 'UPDATE'],
        resources: ['*/*'],
      },
    ],
    admissionReviewVersions: ['v1'],
    sideEffects: 'None',
    failurePolicy: 'Fail',
    clientConfig: { service: { name: WEBHOOK, namespace: NAMESPACE, path } },
  })
  const metadata = {
    name: WEBHOOK,
    annotations: { 'cert-manager.io/inject-ca-from-secret': `${NAMESPACE}/${WEBHOOK}-ca` },
  }
  const group = '/apis/admissionregistration.k8s.io/v1'
  const configurations = [
    ['validatingwebhookconfigurations', '/validate'],
    ['mutatingwebhookconfigurations', '/mutate'],
  ] as const
  for (const [plural, path] of configurations) {
    await must(server, 'POST', `${group}/${plural}`, { metadata, webhooks: [hook(path)] })
  }
  for (const [plural] of configurations) {
    await until(`cainjector has given ${plural} their authority`, async () => {
      const { webhooks } = await must(server, 'GET', `${group}/${plural}/${WEBHOOK}`)
      return webhooks[0].clientConfig.caBundle !== undefined
    })
  }
}

async function launchAll(folder: string, kubeconfig: string, port: number): Promise<ChildProcess[]> {
  const dns = [WEBHOOK, `${WEBHOOK}.${NAMESPACE}`, `${WEBHOOK}.${NAMESPACE}.svc`].join(',')
  const own = `--kubeconfig=${kubeconfig}`
  const election = `--leader-election-namespace=${NAMESPACE}`
  const metrics = await freePort()
  const args = {
    webhook: [
      own,
      `--secure-port=${port}`,
      `--healthz-port=${await freePort()}`,
      `--dynamic-serving-ca-secret-namespace=${NAMESPACE}`,
      `--dynamic-serving-ca-secret-name=${WEBHOOK}-ca`,
      `--dynamic-serving-dns-names=${dns}`,
    ],
    cainjector: [own, election],
    controller: [
      own,
      election,
      `--cluster-resource-namespace=${NAMESPACE}`,
      `--metrics-listen-address=127.0.0.1:${metrics}`,
    ],
  }
  return Promise.all(PROGRAMS.map((name) => launch(join(FOLDER, name), args[name], join(folder, `${name}.log`))))
}

const CERTIFICATES = '/apis/cert-manager.io/v1/namespaces/default/certificates'

async function useIt(server: Server): Promise<void> {
  const issuers = '/apis/cert-manager.io/v1/namespaces/default/issuers'
  await until('the webhook lets an issuer pass', async () => {
    const body = {
      apiVersion: 'cert-manager.io/v1',
      kind: 'Issuer',
      metadata: { name: 'self' },
      spec: { selfSigned: {} },
    }
    return (await ask(server, { method: 'POST', path: issuers, body })).status === 201
  })
  const certificate = (name: string, spec: object): object => ({
    apiVersion: 'cert-manager.io/v1',
    kind: 'Certificate',
    metadata: { name },
    spec: { secretName: name, ...spec },
  })
  const refused = await ask(server, {
    method: 'POST',
    path: CERTIFICATES,
    body: certificate('bad', { issuerRef: { name: 'self' } }),
  })
  if (refused.status < 400) throw new Error('A certificate for nothing was not refused')
  process.stdout.write(`ok  the webhook refuses: ${(refused.body as Json).message}\n`)
  await issue(server, certificate('root', { isCA: true, commonName: 'root', issuerRef: { name: 'self' } }), 'root')
  await must(server, 'POST', issuers, {
    apiVersion: 'cert-manager.io/v1',
    kind: 'Issuer',
    metadata: { name: 'ours' },
    spec: { ca: { secretName: 'root' } },
  })
  await issue(server, certificate('leaf', { dnsNames: ['leaf.example.com'], issuerRef: { name: 'ours' } }), 'leaf')
}

async function issue(server: Server, certificate: object, name: string): Promise<void> {
  await must(server, 'POST', CERTIFICATES, certificate)
  await until(`the certificate "${name}" is issued`, async () => {
    const { status } = await must(server, 'GET', `${CERTIFICATES}/${name}`)
    return status?.conditions?.some(({ type, status: is }: Json) => type === 'Ready' && is === 'True') ?? false
  })
  const { data } = await must(server, 'GET', `/api/v1/namespaces/default/secrets/${name}`)
  if (data['tls.crt'] === undefined) throw new Error(`The Secret "${name}" has no certificate`)
}

async function main(): Promise<void> {
  await mkdir(FOLDER, { recursive: true })
  const sources = build()
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-cert-manager-'))
  const server = await startOurs(folder)
  changeAddress('add')
  let programs: ChildProcess[] = []
  try {
    await must(server, 'POST', '/api/v1/namespaces', { metadata: { name: NAMESPACE } })
    await define(server, sources)
    const port = await freePort()
    programs = await launchAll(folder, await writeKubeconfig(join(folder, 'kubeconfig'), server), port)
    await announce(server, port)
    await useIt(server)
    process.stdout.write('all steps passed\n')
    await rm(folder, { recursive: true, force: true })
  } catch (error) {
    process.stderr.write(`The logs are in ${folder}\n`)
    throw error
  } finally {
    await Promise.all(programs.map((program) => end(program, 'SIGKILL')))
    changeAddress('del')
    await server.stop()
  }
}

await main()
