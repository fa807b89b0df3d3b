import assert from 'node:assert/strict'
import { constants, type KeyObject, sign } from 'node:crypto'
import { describe, it } from 'node:test'

import { createVirtualClock } from '../clock.ts'
import { createSeededRandom } from '../random.ts'
import * as asn1 from './asn1.ts'
import { createAuthority, loadAuthority } from './authority.ts'
import { type Certificate, parseCertificate } from './certificate.ts'
import { verifyChain } from './chain.ts'
import { createKey, generateKey, publicKeyDer } from './key.ts'
import { encodeAlternativeNames, encodeName, nameOf } from './name.ts'
import { parseRequest, verifyRequest } from './request.ts'

const tools = { clock: createVirtualClock(), random: createSeededRandom(3) }
const rsa = await generateKey('rsa-2048')
const ec = createKey()
const root = createAuthority({ commonName: 'root', key: rsa }, tools)
const ecRoot = createAuthority({ commonName: 'root', key: ec }, tools)

interface Method {
  readonly name: string
  readonly oid: string
  readonly hash: string
  readonly key: KeyObject
  readonly parameters?: Buffer
  readonly isPss?: boolean
}

const RSA = '1.2.840.113549.1.1'
const pss = (hash: string, digest: string, saltBytes: number): Omit<Method, 'name'> => {
  const id = asn1.sequence(asn1.oid(digest), asn1.nothing())
  const parameters = asn1.sequence(
    asn1.element(asn1.contextTag(0), id),
    asn1.element(asn1.contextTag(1), asn1.sequence(asn1.oid(`${RSA}.8`), id)),
    asn1.element(asn1.contextTag(2), asn1.integer(saltBytes)),
  )
  return { oid: `${RSA}.10`, hash, key: rsa, parameters, isPss: true }
}

const GOOD: readonly Method[] = [
  { name: 'SHA256-RSA', oid: `${RSA}.11`, hash: 'sha256', key: rsa },
  { name: 'SHA512-RSA', oid: `${RSA}.13`, hash: 'sha512', key: rsa },
  { name: 'ECDSA-SHA384', oid: '1.2.840.10045.4.3.3', hash: 'sha384', key: ec },
  { name: 'RSA-PSS and SHA-256', ...pss('sha256', '2.16.840.1.101.3.4.2.1', 32) },
  { name: 'RSA-PSS and SHA-512', ...pss('sha512', '2.16.840.1.101.3.4.2.3', 64) },
]
const INSECURE: readonly Method[] = [
  { name: 'SHA1-RSA', oid: `${RSA}.5`, hash: 'sha1', key: rsa },
  { name: 'SHA1-RSA', oid: '1.3.14.3.2.29', hash: 'sha1', key: rsa },
  { name: 'ECDSA-SHA1', oid: '1.2.840.10045.4.1', hash: 'sha1', key: ec },
  { name: 'MD5-RSA', oid: `${RSA}.4`, hash: 'md5', key: rsa },
]
const SHA1 = INSECURE.filter(({ hash }) => hash === 'sha1')
const MD5 = INSECURE.at(-1)!
const UNKNOWN: readonly Method[] = [
  { name: 'RSA-PSS and SHA-1', ...pss('sha1', '1.3.14.3.2.26', 20) },
  { name: 'RSA-PSS, SHA-256 and a short salt', ...pss('sha256', '2.16.840.1.101.3.4.2.1', 20) },
  { name: 'SHA224-RSA', oid: `${RSA}.14`, hash: 'sha224', key: rsa },
]

function algorithmOf({ oid, key, parameters }: Method): Buffer {
  const usual = key.asymmetricKeyType === 'rsa' ? [asn1.nothing()] : []
  return asn1.sequence(asn1.oid(oid), ...(parameters === undefined ? usual : [parameters]))
}

function frame(body: Buffer, method: Method): Buffer {
  const padding = constants.RSA_PKCS1_PSS_PADDING
  const saltLength = constants.RSA_PSS_SALTLEN_DIGEST
  const how = method.isPss === true ? { key: method.key, padding, saltLength } : method.key
  return asn1.sequence(body, algorithmOf(method), asn1.bitString(sign(method.hash, body, how)))
}

/** The same certificate, signed again by this method. */
function resign(certificate: Certificate, method: Method): Certificate {
  const fields = certificate.signed.body.children().map(({ raw }) => raw)
  fields[2] = algorithmOf(method)
  return parseCertificate(frame(asn1.sequence(...fields), method))
}

function issue(method: Method): Certificate {
  const authority = method.key === rsa ? root : ecRoot
  return resign(authority.issue({ commonName: 'alice', purpose: 'client' }).certificate, method)
}

const trust = {
  roots: [root.certificate, ecRoot.certificate],
  nowMs: tools.clock.now(),
  usage: 'client auth' as const,
}

/** A request with these attributes. */
function requestBy(method: Method, ...attributes: readonly Buffer[]): Buffer {
  const list = asn1.element(asn1.contextTag(0), ...attributes)
  const subject = encodeName(nameOf({ commonName: 'alice' }))
  return frame(asn1.sequence(asn1.integer(0), subject, publicKeyDer(method.key), list), method)
}

const extensionRequest = (...extensions: readonly Buffer[]): Buffer =>
  asn1.sequence(asn1.oid('1.2.840.113549.1.9.14'), asn1.setOf(asn1.sequence(...extensions)))
const namesExtension = (...dns: readonly string[]): Buffer =>
  asn1.sequence(asn1.oid('2.5.29.17'), asn1.octetString(encodeAlternativeNames({ dns }) ?? Buffer.alloc(0)))
const usageExtension = asn1.sequence(asn1.oid('2.5.29.15'), asn1.octetString(asn1.flagBits([0])))

describe('certificate signatures', () => {
  for (const method of GOOD) {
    it(`with ${method.name} are accepted`, () => {
      const alice = issue(method)
      assert.equal(verifyChain(alice, trust).length, 2)
      const forged = { ...alice, signed: { ...alice.signed, body: issue(method).signed.body } }
      assert.throws(() => verifyChain(forged, trust), { code: 'signature' })
    })
  }

  for (const method of INSECURE) {
    it(`with ${method.name} (${method.oid}) are rejected on leaf and intermediate certificates`, () => {
      const insecure = { message: `x509: cannot verify signature: insecure algorithm ${method.name}` }
      assert.throws(() => verifyChain(issue(method), trust), insecure)
      const authority = method.key === rsa ? root : ecRoot
      const key = createKey()
      const made = authority.issue({ commonName: 'middle', purpose: 'authority', key }).certificate
      const middle = createAuthority({ commonName: 'middle', key }, tools).issue({ commonName: 'b', purpose: 'client' })
      assert.equal(verifyChain(middle.certificate, { ...trust, intermediates: [made] }).length, 3)
      const intermediates = [resign(made, method)]
      assert.throws(() => verifyChain(middle.certificate, { ...trust, intermediates }), insecure)
    })
  }

  for (const method of UNKNOWN) {
    it(`with ${method.name} are rejected`, () => {
      assert.throws(() => verifyChain(issue(method), trust), /algorithm unimplemented/)
    })
  }

  it('are not verified for self-signed roots', () => {
    const roots = [resign(root.certificate, MD5)]
    const alice = root.issue({ commonName: 'alice', purpose: 'client' }).certificate
    assert.equal(verifyChain(alice, { ...trust, roots }).length, 2)
  })

  it('are rejected if they have two different algorithm identifiers', () => {
    const [good, md5] = [issue(GOOD[0]!), issue(MD5)]
    const mixed = asn1.sequence(good.signed.body.raw, md5.signed.algorithm.raw, asn1.bitString(good.signed.signature))
    assert.throws(() => parseCertificate(mixed), /inner and outer signature algorithm identifiers don't match/)
  })
})

describe('authorities without basic constraints', () => {
  const alice = root.issue({ commonName: 'alice', purpose: 'client' }).certificate
  /** The root as it was written before there were extensions, or with version 3 and none. */
  const bare = (version: 1 | 3): Certificate => {
    const [versionField, ...fields] = root.certificate.signed.body.children().map(({ raw }) => raw)
    const kept = fields.slice(0, -1)
    const body = version === 1 ? asn1.sequence(...kept) : asn1.sequence(versionField!, ...kept)
    return parseCertificate(frame(body, GOOD[0]!))
  }

  it('are accepted as roots of X.509 version 1, which has no extensions', () => {
    assert.equal(bare(1).version, 1)
    assert.equal(verifyChain(alice, { ...trust, roots: [bare(1)] }).length, 2)
  })

  it('may sign certificates if they have X.509 version 1, as in Go', () => {
    const certificate = bare(1)
    const key = root.keyPem
    const authority = loadAuthority({ certificate: certificate.pem, key }, tools)
    const bob = authority.issue({ commonName: 'bob', purpose: 'client' }).certificate
    assert.equal(verifyChain(bob, { ...trust, roots: [certificate] }).length, 2)
    assert.throws(() => loadAuthority({ certificate: bare(3).pem, key }, tools), /may not sign certificates/)
  })

  it('are rejected as roots if they have X.509 version 3', () => {
    assert.throws(() => verifyChain(alice, { ...trust, roots: [bare(3)] }), /may not sign certificates/)
  })

  it('are rejected as intermediates', () => {
    const key = createKey()
    const top = createAuthority({ commonName: 'top', key }, tools)
    const old = bare(1)
    const [serial, , , ...rest] = old.signed.body.children().map(({ raw }) => raw)
    const by: Method = { name: 'top', oid: '1.2.840.10045.4.3.2', hash: 'sha256', key }
    const body = asn1.sequence(serial!, algorithmOf(by), top.certificate.subjectDer, ...rest)
    const middle = parseCertificate(frame(body, by))
    const through = { ...trust, roots: [top.certificate], intermediates: [middle] }
    assert.throws(() => verifyChain(alice, through), /may not sign certificates/)
  })
})

describe('certificate requests', () => {
  it('may be signed with SHA-1, but not with MD5', () => {
    for (const method of [...GOOD, ...SHA1]) verifyRequest(parseRequest(requestBy(method)))
    assert.throws(() => verifyRequest(parseRequest(requestBy(MD5))), /insecure algorithm MD5-RSA/)
  })

  it('are parsed with every attribute that requests extensions', () => {
    const attributes = [extensionRequest(usageExtension), extensionRequest(namesExtension('a', 'b'))]
    const { names, usages } = parseRequest(requestBy(GOOD[0]!, ...attributes))
    assert.deepEqual([names.dns, usages], [['a', 'b'], ['digital signature']])
  })

  it('are rejected with a repeated extension, in one attribute or in two', () => {
    const twice = [namesExtension('a'), namesExtension('b')] as const
    for (const attributes of [[extensionRequest(...twice)], twice.map((one) => extensionRequest(one))]) {
      assert.throws(() => parseRequest(requestBy(GOOD[0]!, ...attributes)), /twice/)
    }
  })

  it('may contain unknown attributes', () => {
    const odd = [asn1.integer(7), asn1.sequence(asn1.oid('1.2.3'), asn1.utf8String('x')), asn1.sequence()]
    const { names } = parseRequest(requestBy(GOOD[0]!, ...odd, extensionRequest(namesExtension('a'))))
    assert.deepEqual(names.dns, ['a'])
  })

  it('may have at most a thousand attributes in their subject', () => {
    const organizations = Array.from({ length: 1001 }, (_, index) => `o${index}`)
    const named = (count: number): Buffer =>
      encodeName(nameOf({ commonName: '', organizations: organizations.slice(0, count) }))
    const body = (count: number): Buffer =>
      asn1.sequence(asn1.integer(0), named(count), publicKeyDer(rsa), asn1.element(asn1.contextTag(0)))
    assert.equal(parseRequest(frame(body(1000), GOOD[0]!)).subject.organizations.length, 1000)
    assert.throws(() => parseRequest(frame(body(1001), GOOD[0]!)), /more than 1000 parts in a name/)
  })

  it('may have at most a thousand alternative names', () => {
    const named = (count: number): Buffer => {
      const dns = Array.from({ length: count }, (_, index) => `n${index}`)
      return requestBy(GOOD[0]!, extensionRequest(namesExtension(...dns)))
    }
    assert.equal(parseRequest(named(1000)).names.dns.length, 1000)
    assert.throws(() => parseRequest(named(1001)), /more than 1000 alternative names/)
  })
})
