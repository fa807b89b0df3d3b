import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { connect, type SecureVersion, type TLSSocket } from 'node:tls'

import { realClock } from '../clock.ts'
import { secureRandom } from '../random.ts'
import { type Authority, createAuthority, type Issued, loadAuthority } from '../x509/authority.ts'
import { parseBundle, parseCertificate, signCertificate } from '../x509/certificate.ts'
import { verifyChain } from '../x509/chain.ts'
import { createKey, keyToPem, parsePrivateKey } from '../x509/key.ts'
import { nameOf } from '../x509/name.ts'
import type { Peer } from './exchange.ts'
import { readAuthorities } from './peer-chains.ts'
import { createHttpServer } from './server.ts'

const tools = { clock: realClock, random: secureRandom }
const root = createAuthority({ commonName: 'root' }, tools)
const serving = root.issue({ commonName: 'server', names: { ips: ['127.0.0.1'] }, purpose: 'server' })

function below(authority: Authority, commonName: string): Authority {
  const made = authority.issue({ commonName, purpose: 'authority' })
  return loadAuthority({ certificate: made.certificatePem, key: made.keyPem }, tools)
}

/** A client with everything that lies between it and the root. */
interface Client extends Pick<Issued, 'keyPem'> {
  readonly pem: string
}

function clientOf(...ways: readonly Authority[]): Client {
  const { certificatePem, keyPem } = ways[0]!.issue({ commonName: 'alice', purpose: 'client' })
  return { pem: [certificatePem, ...ways.map((one) => one.certificatePem)].join(''), keyPem }
}

const seen: { isTrusted: boolean; sent: number; names: string[] }[] = []
function note(peer: Peer): void {
  const [leaf, ...intermediates] = peer.chain().map(parseCertificate)
  assert.ok(leaf !== undefined)
  const trust = { roots: [root.certificate], intermediates, nowMs: realClock.now(), usage: 'client auth' as const }
  let names: string[] = []
  try {
    names = verifyChain(leaf, trust).map(({ subject }) => subject.commonName)
  } catch {}
  seen.push({ isTrusted: peer.isTrusted, sent: 1 + intermediates.length, names })
}

async function start(): Promise<number> {
  const server = createHttpServer({
    clock: realClock,
    tls: { certificate: serving.certificatePem, key: serving.keyPem, clientAuthorities: [root.certificatePem] },
    serve(exchange) {
      note(exchange.peer)
      exchange.respond(200, ['Connection', 'close'])
    },
  })
  after(() => server.drain(0))
  const bound = await server.listen({ host: '127.0.0.1', port: 0 })
  assert.ok('port' in bound)
  return bound.port
}

interface Visit {
  readonly client: Client
  readonly version: SecureVersion
  readonly session?: Buffer | undefined
  readonly isSilent?: boolean
}

/** Connects, asks unless it is to stay silent, and comes back with the session it may be resumed by. */
async function visit(
  port: number,
  { client, version, session, isSilent }: Visit,
): Promise<{ session: Buffer; isReused: boolean }> {
  const socket: TLSSocket = connect({
    host: '127.0.0.1',
    port,
    ca: root.certificatePem,
    cert: client.pem,
    key: client.keyPem,
    minVersion: version,
    maxVersion: version,
    ...(session === undefined ? {} : { session }),
  })
  const next = Promise.withResolvers<Buffer>()
  socket.on('session', next.resolve)
  await new Promise((resolve, reject) => {
    socket.once('secureConnect', resolve)
    socket.once('error', reject)
  })
  const isReused = socket.isSessionReused()
  const closed = new Promise((resolve) => void socket.once('close', resolve))
  if (isSilent === true) await next.promise.then(() => socket.destroy())
  else socket.resume().write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await closed
  return { session: isReused && session !== undefined ? session : await next.promise, isReused }
}

describe('certificate chain of a TLS client', () => {
  const middle = below(root, 'middle')
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    it(`is available after a session resumed by ${version}`, async () => {
      const port = await start()
      const client = clientOf(below(middle, 'lowest'), middle)
      const first = await visit(port, { client, version, isSilent: true })
      seen.length = 0
      for (let round = 0; round < 2; round++) {
        const { isReused } = await visit(port, { client, version, session: first.session })
        assert.equal(isReused, true)
        assert.deepEqual(seen.pop(), { isTrusted: true, sent: 3, names: ['alice', 'lowest', 'middle', 'root'] })
      }
    })
  }

  it('may have ten certificates', async () => {
    const port = await start()
    const ways = [below(root, 'level 9')]
    for (let level = 8; level > 0; level--) ways.unshift(below(ways[0]!, `level ${level}`))
    await visit(port, { client: clientOf(...ways), version: 'TLSv1.3' })
    const { isTrusted, sent, names } = seen.pop() ?? {}
    assert.deepEqual([isTrusted, sent, names?.length], [true, 10, 11])
  })

  it('is verified if several authorities have the same name', async () => {
    const port = await start()
    const version = 'TLSv1.3'
    const clients = [1, 2, 3].map(() => clientOf(below(root, 'same')))
    const sessions = []
    for (const client of clients) sessions.push((await visit(port, { client, version })).session)
    for (const [index, client] of clients.entries()) {
      assert.equal((await visit(port, { client, version, session: sessions[index] })).isReused, true)
      assert.deepEqual(seen.pop()?.names, ['alice', 'same', 'root'])
    }
  })

  it('needs intermediate certificates from the client itself', async () => {
    const port = await start()
    await visit(port, { client: clientOf(middle), version: 'TLSv1.3' })
    const alone = middle.issue({ commonName: 'alice', purpose: 'client' })
    await visit(port, { client: { pem: alone.certificatePem, keyPem: alone.keyPem }, version: 'TLSv1.3' })
    assert.deepEqual(seen.pop(), { isTrusted: false, sent: 1, names: [] })
  })

  it('is valid for clients with key usage keyEncipherment only, and not for server certificates', async () => {
    const port = await start()
    const signer = { key: parsePrivateKey(middle.keyPem), certificate: middle.certificate }
    const key = createKey()
    const client = (...usages: readonly string[]): Client => {
      const [nowMs, subject] = [realClock.now(), nameOf({ commonName: 'alice' })]
      const plan = { subject, key, usages, notBeforeMs: nowMs - 60_000, notAfterMs: nowMs + 60_000 }
      const { pem } = signCertificate(plan, signer, secureRandom)
      return { pem: pem + middle.certificatePem, keyPem: keyToPem(key) }
    }
    const version = 'TLSv1.3'
    const byTheBook = client('key encipherment', 'data encipherment', 'server auth', 'client auth')
    const { session } = await visit(port, { client: byTheBook, version })
    await visit(port, { client: byTheBook, version, session })
    const good = { isTrusted: true, sent: 2, names: ['alice', 'middle', 'root'] }
    assert.deepEqual(seen.splice(-2), [good, good])
    await visit(port, { client: client('digital signature', 'server auth'), version })
    assert.deepEqual(seen.pop()?.names, [])
  })

  it('is not cached if the client is untrusted', async () => {
    const port = await start()
    const version = 'TLSv1.3'
    const client = clientOf(below(createAuthority({ commonName: 'other' }, tools), 'theirs'))
    const { session } = await visit(port, { client, version })
    assert.deepEqual(seen.pop(), { isTrusted: false, sent: 2, names: [] })
    assert.equal((await visit(port, { client, version, session })).isReused, true)
    assert.deepEqual(seen.pop(), { isTrusted: false, sent: 1, names: [] })
  })

  it("is rejected if the issuer has an authority's name and another key", async () => {
    const port = await start()
    const twin = createAuthority({ commonName: 'root' }, tools)
    const { subjectKeyId: _, ...certificate } = twin.certificate
    const key = createKey()
    const nowMs = realClock.now()
    const plan = { subject: nameOf({ commonName: 'mallory' }), key, usages: ['client auth'] }
    const leaf = signCertificate(
      { ...plan, notBeforeMs: nowMs - 60_000, notAfterMs: nowMs + 60_000 },
      { key: parsePrivateKey(twin.keyPem), certificate },
      secureRandom,
    )
    const client = { pem: leaf.pem, keyPem: keyToPem(key) }
    seen.length = 0
    for (let round = 0; round < 8; round++) {
      for (const version of ['TLSv1.2', 'TLSv1.3'] as const)
        await visit(port, { client, version }).catch(() => undefined)
    }
    assert.equal(seen.length, 16)
    assert.ok(seen.every(({ isTrusted, names }) => !isTrusted && names.length === 0))
  })

  it('is cached without certificates that no authority signed', async () => {
    const port = await start()
    const version = 'TLSv1.3'
    const twin = createAuthority({ commonName: 'root' }, tools)
    const { subjectKeyId: _, ...named } = root.certificate
    const key = createKey()
    const nowMs = realClock.now()
    const plan = { subject: nameOf({ commonName: 'alice' }), key, usages: ['client auth'] }
    const leaf = signCertificate(
      { ...plan, notBeforeMs: nowMs - 60_000, notAfterMs: nowMs + 60_000 },
      { key: parsePrivateKey(root.keyPem), certificate: named },
      secureRandom,
    )
    const client = { pem: leaf.pem + twin.certificatePem, keyPem: keyToPem(key) }
    const { session } = await visit(port, { client, version })
    assert.deepEqual(seen.pop(), { isTrusted: true, sent: 2, names: ['alice', 'root'] })
    assert.equal((await visit(port, { client, version, session })).isReused, true)
    assert.deepEqual(seen.pop(), { isTrusted: true, sent: 1, names: ['alice', 'root'] })
  })
})

describe('readAuthorities() from PEM', () => {
  const body = root.certificate.der.toString('base64')
  const [begin, end] = ['-----BEGIN CERTIFICATE-----', '-----END CERTIFICATE-----']
  for (const [name, pem] of [
    ['CRLF', root.certificatePem.replaceAll('\n', '\r\n')],
    ['one line', `${begin}\n${body}\n${end}`],
    ['blank lines', `${begin}\n\n${body.replaceAll(/.{64}/g, '$&\n\n')}\n${end}\n`],
    ['indentation', root.certificatePem.replaceAll(/^/gm, '  ')],
    ['comments', `# of a - b\nSubject: root\n${root.certificatePem}\nthe end\n`],
    [
      'another label',
      `-----BEGIN TRUSTED CERTIFICATE-----\n${body}\n-----END TRUSTED CERTIFICATE-----\n${root.certificatePem}`,
    ],
  ] as const)
    it(`reads PEM with ${name} as verifyChain does`, () => {
      assert.deepEqual(
        readAuthorities([pem]).map(({ raw }) => raw),
        parseBundle(pem).map(({ der }) => der),
      )
    })
})
