/**
 * Tests authentication by client certificates over real TLS: signature algorithms, intermediate CAs and resumed
 * sessions.
 */
import assert from 'node:assert/strict'
import { sign } from 'node:crypto'
import { Agent, request } from 'node:https'
import { after, before, describe, it } from 'node:test'
import type { SecureVersion, TLSSocket } from 'node:tls'

import { realClock } from '#lib/clock.ts'
import { secureRandom } from '#lib/random.ts'
import * as asn1 from '#lib/x509/asn1.ts'
import { type Authority, loadAuthority } from '#lib/x509/authority.ts'
import { parseCertificate } from '#lib/x509/certificate.ts'
import { generateKey } from '#lib/x509/key.ts'

import { ofOurs, startWire, type Wire } from './server.ts'

let wire: Wire
before(async () => {
  wire = await startWire()
})
after(() => wire.stop())

interface Shown {
  readonly certificate: string
  readonly key: string
}

/**
 * The response to a request for which no test user has permission, and whether the TLS session was resumed. A 403
 * names the user.
 */
function ask(agent: Agent): Promise<{ status: number; text: string; isReused: boolean }> {
  const { hostname, port } = new URL(wire.url)
  return new Promise((resolve, reject) => {
    const asking = request({ agent, hostname, port, path: '/api/v1/nodes' }, (answer) => {
      const isReused = (answer.socket as TLSSocket).isSessionReused()
      let text = ''
      answer.on('data', (piece: Buffer) => void (text += piece.toString()))
      answer.on('end', () => resolve({ status: answer.statusCode ?? 0, text, isReused }))
    })
    asking.on('error', reject)
    asking.end()
  })
}

function agentOf({ certificate: cert, key }: Shown, version?: SecureVersion): Agent {
  const versions = version === undefined ? {} : { minVersion: version, maxVersion: version }
  return new Agent({ keepAlive: false, rejectUnauthorized: false, cert, key, ...versions })
}

function below(authority: Authority, commonName: string): Authority {
  const made = authority.issue({ commonName, purpose: 'authority' })
  return loadAuthority(
    { certificate: made.certificatePem, key: made.keyPem },
    { clock: realClock, random: secureRandom },
  )
}

describe('client certificates over TLS', ofOurs, () => {
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    it(`of an intermediate CA authenticate in a session resumed by ${version}`, async () => {
      const middle = below(wire.clients, 'middle')
      const { certificatePem, keyPem } = middle.issue({ commonName: 'ada', purpose: 'client' })
      const agent = agentOf({ certificate: certificatePem + middle.certificatePem, key: keyPem }, version)
      for (const isReused of [false, true, true]) {
        const got = await ask(agent)
        assert.deepEqual([got.status, got.isReused], [403, isReused])
        assert.match(got.text, /User \\"ada\\" cannot list resource/)
      }
    })
  }

  it('are refused if they are signed with MD5 or SHA-1', async () => {
    const key = await generateKey('rsa-2048')
    const rsa = wire.clients.issue({ commonName: 'rsa', purpose: 'authority', key })
    const middle = loadAuthority(
      { certificate: rsa.certificatePem, key: rsa.keyPem },
      { clock: realClock, random: secureRandom },
    )
    for (const [oid, hash, status] of [
      ['1.2.840.113549.1.1.11', 'sha256', 403],
      ['1.2.840.113549.1.1.5', 'sha1', 401],
      ['1.2.840.113549.1.1.4', 'md5', 401],
    ] as const) {
      const { certificate, keyPem } = middle.issue({ commonName: 'ada', purpose: 'client' })
      const algorithm = asn1.sequence(asn1.oid(oid), asn1.nothing())
      const fields = certificate.signed.body.children().map(({ raw }) => raw)
      fields[2] = algorithm
      const body = asn1.sequence(...fields)
      const { pem } = parseCertificate(asn1.sequence(body, algorithm, asn1.bitString(sign(hash, body, key))))
      const got = await ask(agentOf({ certificate: pem + rsa.certificatePem, key: keyPem }))
      assert.equal(got.status, status, `${hash}: ${got.text}`)
    }
  })
})
