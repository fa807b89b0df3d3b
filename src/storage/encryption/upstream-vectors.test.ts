import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'

import { startPlugin, testServices } from './kms-plugin.fixture.ts'
import { type OpenAtRest, openAtRest } from './providers.ts'

/**
 * Sealed by the encryption packages of k8s.io/apiserver v0.36.4 under this key, with 32 bytes of 1 as secret and with a
 * plugin like ours. The same packages opened our values, drawn from a seed.
 */
const KEY = '/registry/secrets/default/vector'
const VECTORS: Readonly<Record<string, { readonly theirs: string; readonly ours?: string }>> = {
  aesgcm: {
    theirs:
      '6b38733a656e633a61657367636d3a76313a6b313af48fdce9fe030d50ef5e913cfd672eebf5e8f5e0c514cc3fc36a6a0926d395b48513aca97373d9eab7dade0f7dcf5c',
    ours: '6b38733a656e633a61657367636d3a76313a6b313a296f41058dd7f87e1b0bc3ee67c318cddf35ebd1d6c15f5ca26ef6ce01abc3c0724b4b319d34bc6e36a73587dbf71fbf',
  },
  aescbc: {
    theirs:
      '6b38733a656e633a6165736362633a76313a6b313a14b5f6e55e9691f0cf4239c819c07a1cbb8e4fe7432cb91fdc6e0c614f9ddd3df1b7d5620f2270ce939dee5e614192f4',
    ours: '6b38733a656e633a6165736362633a76313a6b313a296f41058dd7f87e1b0bc3eee947506245eeb0a3c84fde36671fd64da8e9a2f95506bbf4483cd112a806dd28c9edd420',
  },
  secretbox: {
    theirs:
      '6b38733a656e633a736563726574626f783a76313a6b313a5a8eddd3f6822f946808376ac4dd942d052f98bff9cb00ba556940b40e61a339ea4fef635143954f805e5c6a8af50c0d728d7fa13b5a616738ab5d',
    ours: '6b38733a656e633a736563726574626f783a76313a6b313a296f41058dd7f87e1b0bc3eee9475062e6d7e18195b22750a41117054f71748856c471d81dade27ec6dee37d34c9d93972982ae9b786ad6c9f6e3316',
  },
  'kms with a seed': {
    theirs:
      '6b38733a656e633a6b6d733a76323a7661756c743a0a4f5553eac1338791eebbf0959bf0e4da30d6e6f4ad9844fbbec6214effb9adea454423a31342f766c20fc4ec460d7bbd00cb6ffb686a07b6787fab1ea5e790f7e0ac3e8afccfae58e2f8f5f31420dbf012056b65792d311a2023bbaaea3f088a5bce68b9636a8a72beec7cf59b1beccdd307154950ba9de36a22180a1376657273696f6e2e6578616d706c652e636f6d12013122140a0d612e6578616d706c652e636f6d120374776f2801',
    ours: '6b38733a656e633a6b6d733a76323a7661756c743a0a50296f41058dd7f87e1b0bc3eee9475062e6d7e18195b22750f11230cb0dedb76df4bc08ca89c2d64473a949efacc86d68fc63ccc77943d7aa197c02d432b689932431073afd1f3d2cae61f6dc62acea8312056b65792d311a206f5620e91771fb1d032ce041fa7483e78c2ace51fb75e959214059bc0896a0b422180a1376657273696f6e2e6578616d706c652e636f6d12013122140a0d612e6578616d706c652e636f6d120374776f2801',
  },
  'kms with a key, as older servers wrote': {
    theirs:
      '6b38733a656e633a6b6d733a76323a7661756c743a0a2fa943ca2f01ca9a3b00000000f481b1448e0721f2a677b5ec55f08dffd43d58f46a1182aab39085dca6609c3d8eff4e12056b65792d311a20b5fb9be2c67954cb3d3fee2371b4ed63f7c2ddb33130a9b1e40d3c9fcfc16c0322180a1376657273696f6e2e6578616d706c652e636f6d12013122140a0d612e6578616d706c652e636f6d120374776f',
  },
}

async function open(t: TestContext): Promise<OpenAtRest> {
  const { socket } = await startPlugin(t)
  const keys = [{ name: 'k1', secret: Buffer.alloc(32, 1) }]
  const atRest = await openAtRest(
    {
      resources: [
        { resources: ['aesgcm'], providers: [{ type: 'aesgcm', keys }] },
        { resources: ['aescbc'], providers: [{ type: 'aescbc', keys }] },
        { resources: ['secretbox'], providers: [{ type: 'secretbox', keys }] },
        { resources: ['kms'], providers: [{ type: 'kms', name: 'vault', socket, timeoutMs: 60_000 }] },
      ],
    },
    testServices(),
  )
  t.after(() => atRest.close())
  return atRest
}

describe('encryption at rest in upstream formats', () => {
  for (const [what, { theirs, ours }] of Object.entries(VECTORS)) {
    const [resource = ''] = what.split(' ')
    it(`decrypts values that upstream encrypted with ${what}`, async (t) => {
      const atRest = await open(t)
      const sealed = Buffer.from(theirs, 'hex')
      await atRest.prepare([sealed])
      const opened = atRest.resting({ group: '', resource }).open(KEY, sealed)
      assert.equal(Buffer.from(opened).toString(), 'written by upstream')
    })

    if (ours === undefined) continue
    it(`encrypts values that upstream decrypts with ${what}`, async (t) => {
      const atRest = await open(t)
      const sealed = atRest.resting({ group: '', resource }).seal(KEY, Buffer.from('written by hyperkube'))
      assert.equal(sealed.toString('hex'), ours)
    })
  }
})
