import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { createVirtualClock } from '#lib/clock.ts'
import { createSeededRandom } from '#lib/random.ts'
import { createAuthority } from '#lib/x509/authority.ts'

import { signerOf } from './client-authority.ts'

const tools = { clock: createVirtualClock(Date.UTC(2026, 0, 1)), random: createSeededRandom(1) }
const nowMs = tools.clock.now()
const cluster = createAuthority({ commonName: 'kubernetes' }, tools)
const other = createAuthority({ commonName: 'public' }, tools)
const node = { commonName: 'system:node:n1', organizations: ['system:nodes'] }
const certificate = cluster.issue({ ...node, purpose: 'client' }).certificatePem

describe('signerOf() for a client certificate', () => {
  it('returns only the CA that signed the client certificate', () => {
    const ca = `${other.certificatePem}${cluster.certificatePem}`
    assert.equal(signerOf({ ca, certificate }, nowMs).trim(), cluster.certificatePem.trim())
  })

  it('ignores a CA that only signed the certificate of the API server', () => {
    assert.equal(signerOf({ ca: other.certificatePem, certificate }, nowMs), '')
    const serving = cluster.issue({ commonName: 'n1', names: { dns: ['n1'] }, purpose: 'server' }).certificatePem
    assert.equal(signerOf({ ca: cluster.certificatePem, certificate: serving }, nowMs), '')
  })

  it('returns nothing for a self-signed certificate', () => {
    assert.equal(signerOf({ ca: certificate, certificate }, nowMs), '')
  })

  it('returns nothing without a CA, a certificate, or PEM', () => {
    assert.equal(signerOf({ certificate }, nowMs), '')
    assert.equal(signerOf({ ca: cluster.certificatePem }, nowMs), '')
    assert.equal(signerOf({ ca: 'x', certificate }, nowMs), '')
  })
})
