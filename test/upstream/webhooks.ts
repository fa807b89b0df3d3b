/**
 * Compares admission webhooks of upstream's kube-apiserver and ours: `node test/upstream/webhooks.ts [--only TEXT]`.
 * The requests to the webhooks and the effects of their responses must be equal, except for uids, times and ports.
 * Exits with 1 on a difference.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { realClock, sleep } from '#lib/clock.ts'

import { startWebhookServer, type WebhookServer } from '../integration/webhooks/webhook-server.ts'
import { type AdminTls, startOwn } from './kube-apiserver.ts'
import { startReference } from './reference.ts'
import { type Ask, everyWebhookCase, type Json, type WebhookCase } from './webhook-cases.ts'

const { values: options } = parseArgs({ options: { only: { type: 'string' } } })

interface Side {
  readonly port: number
  readonly tls: AdminTls
  readonly hooks: WebhookServer
}

/** How long upstream takes at most to hear of a new configuration. */
const HEARD_MS = 1500

const TYPES = { merge: 'application/merge-patch+json', apply: 'application/apply-patch+yaml', json: 'application/json' }

function send({ port, tls }: Side, { method, path, body, type = 'json' }: Ask): Promise<string> {
  const text = body === undefined ? undefined : JSON.stringify(body)
  const headers = {
    'user-agent': 'webhooks/1',
    ...(text !== undefined && { 'content-type': TYPES[type], 'content-length': Buffer.byteLength(text) }),
  }
  return new Promise((done, fail) => {
    const asking = request({ host: '127.0.0.1', port, method, path, headers, ...tls }, (response) => {
      const pieces: Buffer[] = []
      response.on('data', (piece: Buffer) => pieces.push(piece))
      response.on('error', fail)
      response.on('end', () => {
        const warnings = response.headersDistinct['warning'] ?? []
        done([String(response.statusCode), ...warnings, Buffer.concat(pieces).toString()].join('\n'))
      })
    })
    asking.on('upgrade', (_, socket) => void socket.destroy())
    asking.on('error', fail)
    asking.end(text)
  })
}

function masked(text: string, { port, hooks }: Side): string {
  return (
    text
      .replaceAll(/[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/g, 'UID')
      .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, 'TIME')
      .replaceAll(/(resourceVersion":\s*")\d+/g, '$1N')
      .replaceAll(/"g-\w{5}"/g, '"g-DRAWN"')
      // Go's error contains the address of the DNS server.
      .replaceAll(/(lookup \S+) on [\d.]+:53/g, '$1')
      .replaceAll(/X509SHA256=[\da-f]+/g, 'CERTIFICATE')
      .replaceAll(/kube-api-access-\w{5}/g, 'kube-api-access-X')
      .replaceAll(new RegExp(`\\b(${port}|${hooks.port})\\b`, 'g'), 'PORT')
      .replaceAll(/127\.0\.0\.1:\d+->/g, '127.0.0.1:PORT->')
  )
}

/** The responses of one side to a case, and the requests that its webhooks received. */
async function play(side: Side, one: WebhookCase): Promise<string[]> {
  side.hooks.asked.length = 0
  const told: string[] = []
  for (const ask of one.asks) {
    const answer = await send(side, ask)
    if (ask.prepares !== true) told.push(`${ask.method} ${ask.path}\n${masked(answer, side)}`)
  }
  const asked = side.hooks.asked.filter(({ text }) => !text.includes('"system:apiserver"'))
  return [...told, ...asked.map(({ url, text }) => `ASKED ${url}\n${masked(text, side)}`)]
}

const GROUP = '/apis/admissionregistration.k8s.io/v1'

/** All cases that leave each other alone are configured together: waiting is what takes the time. */
async function configure(side: Side, cases: readonly WebhookCase[]): Promise<void> {
  for (const kind of ['mutating', 'validating'] as const) {
    const webhooks = cases.flatMap((one) => (one.kind === kind ? [webhookOf(side, one)] : []))
    const path = `${GROUP}/${kind}webhookconfigurations`
    await send(side, { method: 'DELETE', path: `${path}/w` })
    if (webhooks.length === 0) continue
    const answer = await send(side, { method: 'POST', path, body: { metadata: { name: 'w' }, webhooks } })
    if (!answer.startsWith('201')) throw new Error(answer)
  }
  await sleep(realClock, HEARD_MS)
}

function webhookOf({ hooks }: Side, { name, script, spec }: WebhookCase): Json {
  const path = `/${name}`
  if (script !== undefined) hooks.on(path, script)
  return {
    name: `${name}.ex.io`,
    clientConfig: { url: hooks.url(path), caBundle: hooks.caBundle },
    objectSelector: { matchLabels: { case: name } },
    rules: [{ operations: ['*'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }],
    sideEffects: 'None',
    admissionReviewVersions: ['v1'],
    timeoutSeconds: 2,
    ...spec?.(hooks),
  }
}

/** Where two texts go apart, with what is around it. */
function apart(theirs: string, ours: string): string {
  let at = 0
  while (at < theirs.length && theirs[at] === ours[at]) at++
  const from = Math.max(at - BEFORE, 0)
  const [head = ''] = theirs.split('\n')
  const part = (text: string): string => text.slice(from, at + AFTER).replaceAll('\n', '\\n')
  return `${head}\n  - ${part(theirs)}\n  + ${part(ours)}`
}

const BEFORE = 60
const AFTER = 240

async function main(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-webhooks-'))
  await using closing = new AsyncDisposableStack()
  closing.defer(() => rm(folder, { recursive: true, force: true }))
  const [theirs, ours] = [join(folder, 'theirs'), join(folder, 'ours')]
  for (const one of [theirs, ours]) await mkdir(one, { recursive: true })
  const reference = await startReference(theirs)
  closing.defer(() => reference.stop())
  const own = await startOwn(ours)
  closing.defer(() => own.stop())
  const sides: Side[] = []
  for (const side of [reference, own]) sides.push({ ...side, hooks: closing.use(await startWebhookServer()) })
  const cases = everyWebhookCase().filter(({ name }) => name.includes(options.only ?? ''))
  let differing = 0
  const compare = async (one: WebhookCase): Promise<void> => {
    const [expected = [], actual = []] = await Promise.all(sides.map((side) => play(side, one)))
    const wrong = expected.flatMap((text, at) => (text === actual[at] ? [] : [apart(text, actual[at] ?? '')]))
    const more = actual.slice(expected.length).map((text) => `+ ${text}`)
    if (wrong.length + more.length === 0) return
    differing++
    process.stdout.write(`\n## ${one.name}\n${[...wrong, ...more].join('\n')}\n`)
  }
  const together = cases.filter(({ isAlone }) => isAlone !== true)
  for (const side of sides) await configure(side, together)
  for (const one of together) await compare(one)
  for (const one of cases.filter(({ isAlone }) => isAlone === true)) {
    for (const side of sides) await configure(side, [one])
    await compare(one)
  }
  process.stdout.write(`\n${cases.length} cases, ${differing} differ from upstream\n`)
  process.exitCode = differing === 0 ? 0 : 1
}

await main()
