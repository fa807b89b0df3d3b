import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { connect, createServer } from 'node:tls'
import type { TLSSocket } from 'node:tls'

import * as fc from 'fast-check'

import { createVirtualClock, realClock } from '../clock.ts'
import { createSeededRandom, secureRandom } from '../random.ts'
import { createAuthority, loadAuthority } from './authority.ts'
import { isExpired, parseBundle, parseCertificate, planRenewal, signCertificate } from './certificate.ts'
import { verifyChain } from './chain.ts'
import { X509Error } from './error.ts'
import { createKey, generateKey, keyToPem, parsePrivateKey } from './key.ts'
import { nameOf } from './name.ts'
import { createRequest, parseRequest, verifyRequest } from './request.ts'

const DAY_MS = 24 * 3_600_000
const tools = { clock: realClock, random: secureRandom }
const fake = (): { clock: ReturnType<typeof createVirtualClock>; random: ReturnType<typeof createSeededRandom> } => ({
  clock: createVirtualClock(),
  random: createSeededRandom(7),
})

const directory = mkdtempSync(join(tmpdir(), 'hyperkube-x509-'))
after(() => rmSync(directory, { recursive: true }))

const skip = spawnSync('openssl', ['version']).status === 0 ? false : 'the openssl program is not installed'

/** Runs `openssl` with the words of `line`, in the temporary directory. */
function openssl(line: string): string {
  const args = line.split(' ')
  const { status, stdout, stderr } = spawnSync('openssl', args, { cwd: directory, encoding: 'utf8' })
  assert.equal(status, 0, `openssl ${line}: ${stderr}`)
  return stdout + stderr
}

const put = (name: string, text: string): string => {
  writeFileSync(join(directory, name), text, { mode: 0o600 })
  return name
}

describe('certificate authority', () => {
  it('issues certificates with all required extensions', () => {
    const { clock, random } = fake()
    const authority = createAuthority({ commonName: 'kubernetes-ca', pathLength: 0 }, { clock, random })
    assert.equal(authority.certificate.isAuthority, true)
    assert.equal(authority.certificate.pathLength, 0)
    assert.deepEqual(authority.certificate.usages, ['digital signature', 'key encipherment', 'cert sign'])
    const { certificate, keyPem } = authority.issue({
      commonName: 'kube-apiserver',
      organizations: ['a', 'b'],
      names: { dns: ['kubernetes'], ips: ['10.96.0.1', '::1'], uris: ['spiffe://x'], emails: ['a@b.c'] },
      purpose: 'peer',
      validityMs: DAY_MS,
    })
    assert.match(keyPem, /BEGIN PRIVATE KEY/)
    assert.equal(certificate.subject.commonName, 'kube-apiserver')
    assert.deepEqual(certificate.subject.organizations, ['a', 'b'])
    assert.deepEqual(certificate.names.ips, ['10.96.0.1', '::1'])
    assert.deepEqual(certificate.usages, ['digital signature', 'server auth', 'client auth'])
    assert.equal(certificate.isAuthority, false)
    assert.deepEqual(certificate.authorityKeyId, authority.certificate.subjectKeyId)
    assert.equal(certificate.notBeforeMs, clock.now() - 5 * 60_000)
    assert.equal(certificate.notAfterMs, clock.now() + DAY_MS - 5 * 60_000)
    assert.ok(certificate.serialNumber.length > 24)
    const node = new X509Certificate(certificate.der)
    assert.equal(node.serialNumber, certificate.serialNumber)
    assert.ok(node.verify(authority.certificate.publicKey))
    assert.ok(node.checkIssued(new X509Certificate(authority.certificate.der)))
    assert.ok(node.checkHost('kubernetes') && node.checkIP('10.96.0.1') && node.checkIP('::1'))
  })

  it('limits the lifetime of certificates to the requested lifetime and to its own', async () => {
    const { clock, random } = fake()
    const authority = createAuthority({ commonName: 'ca', validityMs: 2 * DAY_MS }, { clock, random })
    const issue = (validityMs: number): number =>
      authority.issue({ commonName: 'x', purpose: 'client', validityMs }).certificate.notAfterMs
    assert.equal(issue(3_600_000), clock.now() + 3_600_000)
    assert.equal(issue(30 * DAY_MS), authority.certificate.notAfterMs)
    assert.throws(() => issue(0), { code: 'refused' })
    await clock.advance(2 * DAY_MS + 1000)
    assert.throws(() => issue(DAY_MS), { code: 'expired', message: /"ca" has expired at 2026-01-03T00:00:00.000Z/ })
    assert.ok(isExpired(authority.certificate, clock.now()))
  })

  it('is loaded from files, and rejects a key or certificate of another authority', () => {
    const authority = createAuthority({ commonName: 'ca' }, tools)
    const again = loadAuthority({ certificate: authority.certificatePem, key: authority.keyPem }, tools)
    const { certificate, certificatePem, keyPem } = again.issue({ commonName: 'x', purpose: 'client' })
    verifyChain(certificate, { roots: [authority.certificate], nowMs: realClock.now(), usage: 'client auth' })
    const other = keyToPem(createKey())
    assert.throws(() => loadAuthority({ certificate: authority.certificatePem, key: other }, tools), { code: 'key' })
    assert.throws(() => loadAuthority({ certificate: certificatePem, key: keyPem }, tools), { code: 'refused' })
  })

  it('signs a request with the given usages, and ignores other requested extensions', () => {
    const authority = createAuthority({ commonName: 'ca' }, tools)
    const key = createKey()
    const requestPlan = {
      commonName: 'system:node:a',
      organizations: ['system:nodes'],
      names: { dns: ['a'], ips: ['10.0.0.1'] },
      usages: ['cert sign', 'code signing'],
    }
    const request = createRequest(requestPlan, key)
    const signed = authority.sign(request, {
      usages: ['digital signature', 'client auth'],
      validityMs: DAY_MS,
    })
    assert.deepEqual(signed.usages, ['digital signature', 'client auth'])
    assert.deepEqual(signed.names, request.names)
    assert.deepEqual(signed.subject, request.subject)
    assert.equal(signed.isAuthority, false)
    assert.throws(() => authority.sign(request, { usages: ['x'], validityMs: DAY_MS }), /unrecognized usage values/)
    const forged = parseRequest(Buffer.from(request.der))
    const raw = Buffer.from(forged.signed.body.raw)
    raw[raw.indexOf('system:nodes')]! ^= 1
    const lie = { ...forged, signed: { ...forged.signed, body: { ...forged.signed.body, raw } } }
    assert.throws(() => verifyRequest(lie), { code: 'signature' })
    assert.throws(() => authority.sign(lie, { usages: [], validityMs: DAY_MS }), { code: 'signature' })
  })

  it('renews a certificate with the same names and lifetime, and a new key and serial number', async () => {
    const { clock, random } = fake()
    const authority = createAuthority({ commonName: 'ca' }, { clock, random })
    const first = authority.issue({
      commonName: 'x',
      names: { dns: ['x'] },
      purpose: 'server',
      validityMs: 10 * DAY_MS,
    }).certificate
    await clock.advance(8 * DAY_MS)
    const second = authority.renew(first).certificate
    assert.equal(second.notBeforeMs - first.notBeforeMs, 8 * DAY_MS)
    assert.deepEqual([second.subject, second.names, second.usages], [first.subject, first.names, first.usages])
    assert.notEqual(second.serialNumber, first.serialNumber)
    assert.notDeepEqual(second.subjectKeyId, first.subjectKeyId)
    assert.throws(() => authority.renew(authority.certificate), { code: 'refused' })
  })

  it('respects its path length constraint', () => {
    const root = createAuthority({ commonName: 'root', pathLength: 1 }, tools)
    const middle = root.issue({ commonName: 'middle', purpose: 'authority', pathLength: 0 })
    const issuer = loadAuthority({ certificate: middle.certificatePem, key: middle.keyPem }, tools)
    assert.throws(() => issuer.issue({ commonName: 'deeper', purpose: 'authority', pathLength: 0 }), {
      code: 'refused',
    })
    assert.throws(() => root.issue({ commonName: 'unbounded', purpose: 'authority' }), { code: 'refused' })
    const leaf = issuer.issue({ commonName: 'leaf', purpose: 'client' }).certificate
    const trust = { roots: [root.certificate], nowMs: realClock.now(), usage: 'client auth' as const }
    assert.throws(() => verifyChain(leaf, trust), { code: 'untrusted' })
    const chain = verifyChain(leaf, { ...trust, intermediates: [middle.certificate] })
    assert.deepEqual(
      chain.map((one) => one.subject.commonName),
      ['leaf', 'middle', 'root'],
    )
  })

  it('plans a renewal between 70 and 90 % of the lifetime', () => {
    const { clock, random } = fake()
    const authority = createAuthority({ commonName: 'ca', validityMs: 100 * DAY_MS }, { clock, random })
    const { notBeforeMs, notAfterMs } = authority.certificate
    for (let round = 0; round < 100; round++) {
      const part = (planRenewal(authority.certificate, random) - notBeforeMs) / (notAfterMs - notBeforeMs)
      assert.ok(part >= 0.7 && part < 0.9)
    }
  })
})

describe('verifyChain() of certificates', () => {
  const { clock, random } = fake()
  const root = createAuthority({ commonName: 'root' }, { clock, random })
  const nowMs = clock.now()
  const client = root.issue({ commonName: 'client', purpose: 'client' })
  const trust = { roots: [root.certificate], nowMs, usage: 'client auth' as const }

  it('rejects an expired or forged certificate, another usage and another authority', () => {
    assert.equal(verifyChain(client.certificate, trust).length, 2)
    assert.throws(() => verifyChain(client.certificate, { ...trust, nowMs: nowMs - DAY_MS }), { code: 'expired' })
    assert.throws(() => verifyChain(client.certificate, { ...trust, nowMs: nowMs + 400 * DAY_MS }), { code: 'expired' })
    assert.throws(() => verifyChain(client.certificate, { ...trust, usage: 'server auth' }), { code: 'untrusted' })
    assert.throws(() => verifyChain(client.certificate, { ...trust, roots: [] }), /unknown authority/)
    const sameName = createAuthority({ commonName: 'root' }, { clock, random })
    assert.throws(
      () => verifyChain(client.certificate, { ...trust, roots: [sameName.certificate] }),
      /unknown authority/,
    )
    const lie = { ...client.certificate, authorityKeyId: sameName.certificate.subjectKeyId! }
    assert.throws(() => verifyChain(lie, { ...trust, roots: [sameName.certificate] }), { code: 'signature' })
  })

  it('rejects a chain through a certificate without CA rights', () => {
    const key = parsePrivateKey(client.keyPem)
    const plan = { ...client.certificate, subject: nameOf({ commonName: 'victim' }), key: createKey() }
    const forged = signCertificate(plan, { key, certificate: client.certificate }, random)
    assert.throws(() => verifyChain(forged, { ...trust, intermediates: [client.certificate] }), {
      code: 'untrusted',
      message: /"client" may not sign certificates/,
    })
  })

  it('rejects an unknown critical extension', () => {
    assert.throws(() => verifyChain({ ...client.certificate, unknownCritical: ['2.5.29.30'] }, trust), /2\.5\.29\.30/)
  })

  it('takes bounded time for any number of certificates', () => {
    const looping = Array.from({ length: 40 }, () => {
      const one = createAuthority({ commonName: 'same' }, { clock, random }).certificate
      const { authorityKeyId: _, subjectKeyId: __, ...rest } = one
      return rest
    })
    assert.throws(() => verifyChain(looping[0]!, { ...trust, intermediates: looping }), X509Error)
  })
})

describe('openssl with our certificates', { skip }, () => {
  it('verifies our chains and prints their content, for every kind of key', async () => {
    const keys = [createKey(), createKey('ecdsa-p384'), createKey('ed25519'), await generateKey('rsa-2048')]
    for (const [index, key] of keys.entries()) {
      const authority = createAuthority({ commonName: `ca ${index}`, key, pathLength: 0 }, tools)
      const leaf = authority.issue({
        commonName: 'leaf',
        organizations: ['system:masters'],
        names: { dns: ['localhost'], ips: ['127.0.0.1', 'fd00::1'], uris: ['spiffe://x/y'], emails: ['a@b.c'] },
        purpose: 'server',
        key,
      })
      put('ca.pem', authority.certificatePem)
      put('leaf.pem', leaf.certificatePem)
      openssl('verify -x509_strict -CAfile ca.pem -purpose sslserver -verify_ip 127.0.0.1 leaf.pem')
      const shown = openssl('x509 -in leaf.pem -noout -text')
      for (const part of [/O ?= ?system:masters/, /IP Address:127.0.0.1/, /URI:spiffe:\/\/x\/y/, /email:a@b.c/]) {
        assert.match(shown, part)
      }
      assert.match(shown, /TLS Web Server Authentication/)
    }
  })

  it('verifies our certificate requests', async () => {
    for (const key of [createKey(), createKey('ed25519'), await generateKey('rsa-2048')]) {
      const request = createRequest({ commonName: 'me', organizations: ['us'], names: { dns: ['me.example'] } }, key)
      verifyRequest(request)
      put('ours.csr', request.pem)
      assert.match(openssl('req -in ours.csr -verify -noout'), /OK/i)
      assert.match(openssl('req -in ours.csr -noout -text'), /DNS:me\.example/)
    }
  })

  it('creates certificate requests that we parse, verify and sign', () => {
    const authority = createAuthority({ commonName: 'ca' }, tools)
    const kinds = ['rsa:2048', 'ec -pkeyopt ec_paramgen_curve:P-256', 'ed25519']
    for (const kind of kinds) {
      const extensions = '-addext subjectAltName=DNS:n1,IP:10.0.0.7 -addext keyUsage=digitalSignature'
      const subject = '/O=system:nodes/O=other/CN=system:node:n1'
      openssl(`req -new -newkey ${kind} -nodes -keyout theirs.key -out theirs.csr -subj ${subject} ${extensions}`)
      const request = parseRequest(openssl('req -in theirs.csr'))
      verifyRequest(request)
      assert.equal(request.subject.commonName, 'system:node:n1')
      assert.deepEqual(request.subject.organizations, ['system:nodes', 'other'])
      assert.deepEqual([request.names.dns, request.names.ips], [['n1'], ['10.0.0.7']])
      assert.deepEqual(request.usages, ['digital signature'])
      const signed = authority.sign(request, { usages: ['digital signature', 'client auth'], validityMs: DAY_MS })
      put('ca.pem', authority.certificatePem)
      put('signed.pem', signed.pem)
      openssl('verify -x509_strict -CAfile ca.pem -purpose sslclient signed.pem')
    }
  })

  it('creates authorities that we can load', () => {
    openssl('req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.crt -days 3 -subj /CN=theirs')
    const pem = { certificate: openssl('x509 -in ca.crt'), key: openssl('pkey -in ca.key') }
    const authority = loadAuthority(pem, tools)
    put('leaf.pem', authority.issue({ commonName: 'leaf', purpose: 'server' }).certificatePem)
    openssl('verify -CAfile ca.crt leaf.pem')
  })
})

describe('TLS of Node with our certificates', () => {
  it('accepts them in client and server', async () => {
    const authority = createAuthority({ commonName: 'ca' }, tools)
    const serving = authority.issue({ commonName: 'server', names: { ips: ['127.0.0.1'] }, purpose: 'server' })
    const client = authority.issue({ commonName: 'alice', organizations: ['devs', 'ops'], purpose: 'client' })
    const ca = authority.certificatePem
    const server = createServer({
      ca,
      cert: serving.certificatePem,
      key: serving.keyPem,
      requestCert: true,
      rejectUnauthorized: true,
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const peer = new Promise<TLSSocket>((resolve) => server.once('secureConnection', resolve))
    const { port } = server.address() as AddressInfo
    const socket = connect({ host: '127.0.0.1', port, ca, cert: client.certificatePem, key: client.keyPem })
    const seen = parseCertificate((await peer).getPeerX509Certificate()!.raw)
    assert.equal(seen.subject.commonName, 'alice')
    assert.deepEqual(seen.subject.organizations, ['devs', 'ops'])
    ;(await peer).destroy()
    socket.destroy()
    await new Promise((resolve) => server.close(resolve))
  })
})

describe('PEM bundle of certificates', () => {
  it('is parsed in order without other blocks', () => {
    const a = createAuthority({ commonName: 'a' }, tools)
    const b = createAuthority({ commonName: 'b' }, tools)
    const found = parseBundle(`# comment\n${a.certificatePem}${a.keyPem}\ntext\n${b.certificatePem}`)
    assert.deepEqual(
      found.map((one) => one.subject.commonName),
      ['a', 'b'],
    )
    assert.throws(() => parseBundle(a.keyPem), { code: 'malformed' })
    assert.throws(() => parseCertificate(''), { code: 'malformed' })
  })

  it('causes only X509Error for any bytes', () => {
    const authority = createAuthority({ commonName: 'ca', organizations: ['o'] }, fake())
    const names = { dns: ['a'], ips: ['::1'] }
    const request = createRequest({ commonName: 'r', names }, createKey())
    const targets: [Buffer, (der: Buffer) => unknown][] = [
      [authority.certificate.der, parseCertificate],
      [request.der, (der) => verifyRequest(parseRequest(der))],
    ]
    for (const [der, read] of targets) {
      const mutation = fc.array(fc.tuple(fc.nat({ max: der.length - 1 }), fc.nat({ max: 255 })), { maxLength: 4 })
      fc.assert(
        fc.property(mutation, fc.nat({ max: der.length }), (changes, length) => {
          const bytes = Buffer.from(length > der.length / 2 ? der : der.subarray(0, length))
          for (const [at, value] of changes) if (at < bytes.length) bytes[at] = value
          try {
            read(bytes)
          } catch (error) {
            assert.ok(error instanceof X509Error, String(error))
          }
        }),
        { numRuns: 1500 },
      )
    }
  })
})
