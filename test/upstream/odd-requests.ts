/**
 * Sends the same unusual requests to upstream's kube-apiserver and to ours, and compares codes, warnings and bodies
 * byte for byte: `node test/upstream/odd-requests.ts [--only TEXT] [--ours-twice]`. Varying values (uids, times,
 * versions, random names and addresses) are masked. `odd-request-differences.ts` lists the accepted differences with
 * their reasons. Exits with 1 on any other difference. `--ours-twice` compares our server with itself, to find requests
 * whose answers vary.
 */
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { Agent, request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { realClock, sleep } from '#lib/clock.ts'

import { type AdminTls, startOwn } from './kube-apiserver.ts'
import { sameBut } from './odd-request-differences.ts'
import { type Ask, everyStory } from './odd-request-list.ts'
import { startReference } from './reference.ts'

const { values: options } = parseArgs({ options: { only: { type: 'string' }, 'ours-twice': { type: 'boolean' } } })

interface Side {
  readonly port: number
  readonly tls: AdminTls
  stop(): Promise<void>
}

const PATCH_TYPES = {
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  json: 'application/json-patch+json',
  apply: 'application/apply-patch+yaml',
} as const

const agent = new Agent({ keepAlive: true })

/** The answer as lines for people: code, kind of content, warnings, body. */
function send({ port, tls }: Side, { method, path, body, type, accept }: Ask): Promise<string> {
  const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
  const headers = {
    'user-agent': 'odd/1',
    ...(text === undefined
      ? {}
      : {
          'content-type': type === undefined ? 'application/json' : PATCH_TYPES[type],
          'content-length': Buffer.byteLength(text),
        }),
    ...(accept === undefined ? {} : { accept }),
  }
  return new Promise((done, fail) => {
    const asking = request({ host: '127.0.0.1', port, method, path, headers, agent, ...tls }, (response) => {
      const pieces: Buffer[] = []
      response.on('data', (piece: Buffer) => pieces.push(piece))
      response.on('error', fail)
      response.on('end', () => {
        const warnings = response.headersDistinct['warning'] ?? []
        const head = [String(response.statusCode), response.headers['content-type'] ?? '']
        done([...head, ...warnings, Buffer.concat(pieces).toString()].join('\n'))
      })
    })
    asking.on('error', fail)
    asking.end(text)
  })
}

/** Values that may differ between two servers. */
const MASKS: readonly (readonly [RegExp, string])[] = [
  [/[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/g, 'UID'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, 'TIME'],
  [/(resourceVersion\\*":\s*\\*")\d+/g, '$1N'],
  [/(Too large resource version: |current: |in record \(|in object meta: )\d+/g, '$1N'],
  [/\b10\.0\.0\.\d+\b/g, 'SERVICE-IP'],
  [/(nodePort":\s*)\d+/g, '$1N'],
  [/Bad_\w{5}/g, 'Bad_XXXXX'],
  // Where upstream's sources were when it was built.
  [/in scheme \\+"[^"]+"/g, 'in scheme'],
  // Descriptions are in our own words, or none.
  [/"description":"(?:[^"\\]|\\.)*"/g, '"description":""'],
  [/"(?:\d+m)?\d+s"/g, '"AGE"'],
  // A dry run of upstream's names keys without the prefix of its storage.
  [/(Key: )\/registry/g, '$1'],
  [/kube-api-access-\w{5}/g, 'kube-api-access-XXXXX'],
  [/eyJ[\w-]+\.[\w-]+\.[\w-]+/g, 'TOKEN'],
  [/X509SHA256=[\da-f]{64}/g, 'X509SHA256=H'],
]

const masked = (text: string): string => MASKS.reduce((so, [what, mask]) => so.replaceAll(what, mask), text)

/** Where two texts part, with a little before. */
function parting(theirs: string, ours: string): string {
  let at = 0
  while (at < theirs.length && theirs[at] === ours[at]) at++
  const from = Math.max(0, at - 60)
  return `  upstream …${theirs.slice(from, at + 300)}\n  ours     …${ours.slice(from, at + 300)}`
}

const say = (line: string): boolean => process.stdout.write(`${line}\n`)

/** How the answers to one request differ, for people; empty when they do not. */
async function difference(name: string, ask: Ask, { upstream, ours }: Sides): Promise<string> {
  const answer = async (side: Side): Promise<string> => sameBut(name, ask, masked(await send(side, ask)))
  const [theirs, own] = [await answer(upstream), await answer(ours)]
  if (ask.prepares === true || theirs === own) return ''
  const body = ask.body === undefined ? '' : typeof ask.body === 'string' ? ask.body : JSON.stringify(ask.body)
  return `${ask.method} ${ask.path} ${ask.type ?? ''} ${body.slice(0, 200)}\n${parting(theirs, own)}`
}

/**
 * Kinds of which a controller of the server writes the status at once. Entries of managedFields are in the order of
 * their times, so that both entries should have the same second on both servers.
 */
const WATCHED = /^(?:CustomResourceDefinition|APIService) /

async function nextSecond(): Promise<void> {
  await sleep(realClock, 1000 - (realClock.now() % 1000))
}

interface Sides {
  readonly upstream: Side
  readonly ours: Side
}

async function compare(sides: Sides): Promise<number> {
  const asks = everyStory()
    .filter(({ name }) => name.includes(options.only ?? ''))
    .flatMap(({ name, asks: all }) => all.map((ask) => ({ name, ask })))
  let different = 0
  for (const { name, ask } of asks) {
    if (WATCHED.test(name) && ask.method === 'POST' && !ask.path.includes('dryRun')) await nextSecond()
    const text = await difference(name, ask, sides)
    if (text === '') continue
    different++
    say(`${name}: ${text}`)
  }
  say(`${asks.filter(({ ask }) => ask.prepares !== true).length} requests, ${different} with different answers`)
  return different
}

async function main(): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-odd-'))
  const sub = async (name: string): Promise<string> => {
    await mkdir(join(folder, name))
    return join(folder, name)
  }
  const upstream = await (options['ours-twice'] === true ? startOwn : startReference)(await sub('upstream'))
  const ours = await startOwn(await sub('ours'))
  try {
    return (await compare({ upstream, ours })) === 0 ? 0 : 1
  } finally {
    agent.destroy()
    await Promise.all([upstream.stop(), ours.stop()])
    await rm(folder, { recursive: true })
  }
}

process.exitCode = await main()
