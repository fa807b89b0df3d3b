/**
 * The requests and operator actions of `controller-runtime.ts`, recorded as lines, so that two servers can be compared.
 */
import { type ChildProcess, spawnSync } from 'node:child_process'
import { join } from 'node:path'

import { realClock, sleep } from '#lib/clock.ts'

import { end, launch } from '../kube-apiserver.ts'
import { ask, type Ask, type Server, type Response } from '../ours.ts'
import { configurations, definition, GROUP, NAME } from './objects.ts'

/** Of this machine alone, and the cluster address of the Service too: upstream does not look at endpoints. */
export const ADDRESS = '10.0.0.213'

export interface Stage {
  readonly server: Server
  readonly folder: string
  readonly program: string
  readonly kubeconfig: string
  readonly certificates: string
  /** Where the operator listens. */
  readonly port: number
}

// oxlint-disable-next-line typescript/no-explicit-any -- answers are looked into, not relied upon
type Json = any

const PATIENCE_MS = 30_000
const WIDGETS = `/apis/${GROUP}/v2/namespaces/default/widgets`
const OLD_WIDGETS = `/apis/${GROUP}/v1/namespaces/default/widgets`
const DEFINITION = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${NAME}`
const CONFIGURATIONS = ['mutating', 'validating'].map(
  (kind) => `/apis/admissionregistration.k8s.io/v1/${kind}webhookconfigurations`,
)
const APPLY = 'application/apply-patch+yaml'

interface Teller {
  readonly lines: string[]
  readonly stage: Stage
  /** Asks, and tells what came of it. */
  readonly tell: (what: string, request: Ask) => Promise<Response>
  readonly get: (path: string) => Promise<Json>
  /** Rejects with what it says instead of true when it takes too long. */
  readonly until: (what: string, isSo: () => Promise<unknown>) => Promise<void>
}

function tellerOf(stage: Stage): Teller {
  const lines: string[] = []
  const { server } = stage
  return {
    lines,
    stage,
    tell: async (what, request) => {
      const told = await ask(server, request)
      lines.push(masked(stage, [what, told.status, ...told.warnings, shown(told.body)].join(' ')))
      return told
    },
    get: async (path) => (await ask(server, { path })).body,
    until: async (what, isSo) => {
      const startMs = realClock.elapsed()
      let answer: unknown
      while ((answer = await isSo()) !== true) {
        const isLate = realClock.elapsed() - startMs > PATIENCE_MS
        if (isLate) throw new Error(`Not within ${PATIENCE_MS / 1000} s: ${what}: ${JSON.stringify(answer)}`)
        await sleep(realClock, 100)
      }
      lines.push(what)
    },
  }
}

/** Without when and by whom fields were set; keys in order, which upstream has otherwise for objects without Go types. */
function shown(body: unknown): string {
  return JSON.stringify(body, (name, value: unknown) => {
    if (['managedFields', 'caBundle'].includes(name)) return undefined
    if (value === null || typeof value !== 'object' || Array.isArray(value)) return value
    return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
  })
}

function masked({ server, port }: Stage, text: string): string {
  return text
    .replaceAll(/[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/g, 'UID')
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, 'TIME')
    .replaceAll(/(resourceVersion\\*":\s*\\*")\d+/g, '$1N')
    .replaceAll(new RegExp(`\\b(${server.port}|${port})\\b`, 'g'), 'PORT')
    .replaceAll(/:\d+->/g, ':PORT->')
}

type Look = { readonly annotations?: object; readonly labels?: object }

const widget = (name: string, size: number, look: Look = {}): object => ({
  apiVersion: `${GROUP}/v2`,
  kind: 'Widget',
  metadata: { name, ...look },
  spec: { size },
})

const refusing = (how: string, labels?: object): Look => ({
  annotations: { refuse: how },
  ...(labels && { labels }),
})

export async function liveThrough(stage: Stage): Promise<string[]> {
  const teller = tellerOf(stage)
  await announce(teller)
  await teller.tell('nobody to ask', { method: 'POST', path: WIDGETS, body: widget('early', 1) })
  const webhooks = await start(teller, ['--webhooks-only'])
  try {
    await untilTrusted(teller)
    await admit(teller)
    await convert(teller)
    await change(teller)
    useClient(teller)
  } finally {
    await end(webhooks, 'SIGTERM')
  }
  await failAlone(teller)
  await reconcile(teller)
  await teller.tell('read the old where it is stored', { path: `${OLD_WIDGETS}/later` })
  return teller.lines
}

function start({ stage }: Teller, more: readonly string[] = []): Promise<ChildProcess> {
  const { program, kubeconfig, certificates, port, folder } = stage
  const flags = [`--kubeconfig=${kubeconfig}`, `--certificates=${certificates}`, `--host=${ADDRESS}`, `--port=${port}`]
  return launch(program, ['operator', ...flags, ...more], join(folder, 'operator.log'))
}

async function announce(teller: Teller): Promise<void> {
  const { tell, until, get, stage } = teller
  const service = { metadata: { name: 'widgets' }, spec: { clusterIP: ADDRESS, ports: [{ port: stage.port }] } }
  await ask(stage.server, { method: 'POST', path: '/api/v1/namespaces/default/services', body: service })
  const slice = {
    metadata: { name: 'widgets', labels: { 'kubernetes.io/service-name': 'widgets' } },
    addressType: 'IPv4',
    endpoints: [{ addresses: [ADDRESS] }],
    ports: [{ port: stage.port }],
  }
  const slices = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices'
  await ask(stage.server, { method: 'POST', path: slices, body: slice })
  const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
  await tell('define', { method: 'POST', path: definitions, body: definition(stage.port) })
  await until('the kind is established', async () => {
    const { status } = await get(DEFINITION)
    return status?.conditions?.some(({ type, status: is }: Json) => type === 'Established' && is === 'True') ?? false
  })
  const bodies = configurations(`https://${ADDRESS}:${stage.port}`)
  for (const [at, path] of CONFIGURATIONS.entries()) await tell('configure', { method: 'POST', path, body: bodies[at] })
  await until('the webhooks are heard of', async () => {
    const path = `${WIDGETS}?dryRun=All`
    const { body } = await ask(stage.server, { method: 'POST', path, body: widget('trial', 1) })
    return (body as Json).message?.includes('failed calling webhook') ?? false
  })
}

async function untilTrusted({ until, get, stage }: Teller): Promise<void> {
  await until('the operator has said whom to trust', async () => {
    const [mutating, validating] = await Promise.all(CONFIGURATIONS.map((path) => get(`${path}/${NAME}`)))
    const all = [...mutating.webhooks, ...validating.webhooks]
    const { spec } = await get(DEFINITION)
    const { clientConfig } = spec.conversion.webhook
    return all.every((one: Json) => one.clientConfig.caBundle !== undefined) && clientConfig.caBundle !== undefined
  })
  await until('the webhooks answer, in either version', async () => {
    const body = widget('trial', 1)
    const asked = await ask(stage.server, { method: 'POST', path: `${WIDGETS}?dryRun=All`, body })
    const old = await ask(stage.server, { path: OLD_WIDGETS })
    return (asked.status === 201 && old.status === 200) || [asked, old]
  })
}

async function admit({ tell }: Teller): Promise<void> {
  const create = (what: string, body: object): Promise<Response> => tell(what, { method: 'POST', path: WIDGETS, body })
  await create('mutate', widget('plain', 1))
  await create('warn', widget('nothing', 0))
  await create('validate', widget('large', 11))
  await create('refuse in the defaults', widget('a', 1, refusing('default')))
  await create('refuse as invalid', widget('a', 1, refusing('invalid')))
  await create('refuse as a conflict', widget('a', 1, refusing('conflict')))
  await create('panic', widget('a', 1, refusing('panic')))
  await create('time out', widget('a', 1, refusing('slowly')))
  await create('time out, softly', widget('slow', 1, refusing('slowly', { soft: 'yes' })))
  await create('a value of the wrong type', { ...widget('a', 1), spec: { size: 'x' } })
  const at = `${WIDGETS}/plain`
  const fixed = { metadata: { annotations: { fixed: 'yes', keep: 'yes' } } }
  await tell('fix', { method: 'PATCH', path: at, body: fixed })
  await tell('refuse a change', { method: 'PATCH', path: at, body: { spec: { color: 'red' } } })
  await tell('refuse to delete', { method: 'DELETE', path: at })
  await tell('keep no more', { method: 'PATCH', path: at, body: { metadata: { annotations: { keep: null } } } })
  await tell('delete all', { method: 'DELETE', path: `${WIDGETS}?labelSelector=soft` })
}

async function convert({ tell }: Teller): Promise<void> {
  await tell('read the old', { path: `${OLD_WIDGETS}/plain` })
  await tell('list the old', { path: OLD_WIDGETS })
  const old = (name: string, look: string): object => ({
    apiVersion: `${GROUP}/v1`,
    kind: 'Widget',
    metadata: { name },
    spec: { look },
  })
  await tell('write the old', { method: 'POST', path: OLD_WIDGETS, body: old('older', 'red:3') })
  await tell('read the new', { path: `${WIDGETS}/older` })
  await tell('validate the old', { method: 'POST', path: OLD_WIDGETS, body: old('a', 'red:12') })
  await tell('convert what cannot be', { method: 'POST', path: OLD_WIDGETS, body: old('a', 'red') })
  await tell('patch the old', { method: 'PATCH', path: `${OLD_WIDGETS}/older`, body: { spec: { look: 'red:4' } } })
  const path = `${OLD_WIDGETS}/applied?fieldManager=me`
  await tell('apply the old', { method: 'PATCH', path, type: APPLY, body: old('applied', 'grey:5') })
  await tell('apply the old again', { method: 'PATCH', path, type: APPLY, body: old('applied', ':6') })
  await tell('read what was applied', { path: `${WIDGETS}/applied` })
  const table = 'application/json;as=Table;v=v1;g=meta.k8s.io'
  await tell('a table of the old', { path: `${OLD_WIDGETS}/older`, accept: table })
}

/** Changes objects in the old version, which are converted before the webhooks for v2 receive them. */
async function change({ tell }: Teller): Promise<void> {
  await tell('the status by the old', {
    method: 'PATCH',
    path: `${OLD_WIDGETS}/older/status`,
    body: { status: { replicas: 2 } },
  })
  await tell('the scale', { path: `${WIDGETS}/older/scale` })
  await tell('scale too far', { method: 'PATCH', path: `${WIDGETS}/older/scale`, body: { spec: { replicas: 12 } } })
  await tell('scale', { method: 'PATCH', path: `${WIDGETS}/older/scale`, body: { spec: { replicas: 7 } } })
  await tell('delete the old', { method: 'DELETE', path: `${OLD_WIDGETS}/applied` })
}

function useClient({ lines, stage }: Teller): void {
  const { stdout, status } = spawnSync(stage.program, ['client', `--kubeconfig=${stage.kubeconfig}`], {
    encoding: 'utf8',
    timeout: PATIENCE_MS,
  })
  lines.push(
    ...stdout
      .trim()
      .split('\n')
      .map((line) => masked(stage, line)),
    `the client ended with ${status}`,
  )
}

async function failAlone({ tell }: Teller): Promise<void> {
  const create = (what: string, body: object): Promise<Response> => tell(what, { method: 'POST', path: WIDGETS, body })
  await create('fail closed', widget('closed', 1))
  await create('fail open', widget('open', 1, { labels: { soft: 'yes' } }))
  await tell('read the old, with nobody to convert', { path: `${OLD_WIDGETS}/open` })
  await tell('read the new, with nobody to convert', { path: `${WIDGETS}/open` })
}

const LEASE = `/apis/coordination.k8s.io/v1/namespaces/default/leases/${NAME}`

async function reconcile(teller: Teller): Promise<void> {
  const { tell, until, get, lines } = teller
  const operator = await start(teller)
  try {
    await until('the operator is elected', async () => Boolean((await get(LEASE)).spec?.holderIdentity))
    await until('what was there is reconciled', async () => {
      const { items } = await get(WIDGETS)
      return items.every(({ status }: Json) => status?.conditions?.[0]?.status === 'True')
    })
    await tell('what became of it', { path: `${WIDGETS}/older` })
    await tell('what it owns', { path: '/api/v1/namespaces/default/configmaps/older' })
    await tell('change it', { method: 'PATCH', path: `${OLD_WIDGETS}/older`, body: { spec: { look: 'red:9' } } })
    const configMap = '/api/v1/namespaces/default/configmaps/older'
    await until('what it owns has followed', async () => (await get(configMap)).data.look === 'red:9')
    await tell('delete what it owns', { method: 'DELETE', path: configMap })
    await until('it is made anew', async () => (await get(configMap)).data?.look === 'red:9')
    const events = '/apis/events.k8s.io/v1/namespaces/default/events'
    await until('it was told of', async () =>
      (await get(events)).items.some(({ note }: Json) => note === 'config map updated'),
    )
    await tell('delete it', { method: 'DELETE', path: `${WIDGETS}/older` })
    await until('it is gone', async () => (await get(`${WIDGETS}/older`)).code === 404)
    await tell('its farewell', { path: '/api/v1/namespaces/default/configmaps/farewell-older' })
    await electAnother(teller, operator)
  } finally {
    await end(operator, 'SIGTERM')
  }
  const { spec } = await get(LEASE)
  lines.push(`the lease is held by "${spec.holderIdentity}"`)
}

/** The waiting instance becomes leader when the leader exits. */
async function electAnother(teller: Teller, elected: ChildProcess): Promise<void> {
  const { until, get, tell } = teller
  const holder = async (): Promise<string> => (await get(LEASE)).spec.holderIdentity
  const first = await holder()
  await end(elected, 'SIGTERM')
  const second = await start(teller)
  try {
    await until('another is elected', async () => ![first, ''].includes(await holder()))
    await until('it serves', async () => (await get(OLD_WIDGETS)).kind === 'WidgetList')
    await tell('make another', { method: 'POST', path: WIDGETS, body: widget('later', 2) })
    await until('it reconciles', async () => (await get(`${WIDGETS}/later`)).status?.replicas === 2)
    await migrateStorage(teller)
  } finally {
    await end(second, 'SIGTERM')
  }
}

/** All is written once more after the storage version has changed, and the old one is then forgotten. */
async function migrateStorage({ tell, get, until, stage }: Teller): Promise<void> {
  const { spec } = await get(DEFINITION)
  const versions = spec.versions.map((version: Json) => ({ ...version, storage: version.name === 'v1' }))
  const { body } = await tell('store the old', { method: 'PATCH', path: DEFINITION, body: { spec: { versions } } })
  const { storedVersions } = (body as Json).status
  if (String(storedVersions) !== 'v2,v1' && String(storedVersions) !== 'v1,v2') throw new Error(String(storedVersions))
  // Upstream's server answers 404 for a moment while it replaces the handlers of a changed definition.
  let items: Json[] = []
  await until('it is served again', async () => {
    const list = await get(WIDGETS)
    if (list.kind === 'WidgetList') items = list.items as Json[]
    return list.kind === 'WidgetList'
  })
  for (const { metadata } of items) {
    const path = `${WIDGETS}/${metadata.name}`
    await until(
      'it is stored again',
      async () => (await ask(stage.server, { method: 'PATCH', path, body: {} })).status === 200,
    )
  }
  const status = { status: { storedVersions: ['v1'] } }
  await tell('forget the new', { method: 'PATCH', path: `${DEFINITION}/status`, body: status })
  await tell('read the new of the old', { path: WIDGETS })
}
