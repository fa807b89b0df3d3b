import assert from 'node:assert/strict'
import process from 'node:process'
import { describe, test } from 'node:test'

import { applyNft, deleteNftTable, listNft, listNftTable, listNftTables, NftError } from '#lib/net/nft.ts'

import { createNamespace, whyNoNetworks } from './network-bed.ts'

const missing = await whyNoNetworks()
if (missing !== undefined) process.stderr.write(`nft: skipping, ${missing}\n`)

describe('nft', { skip: missing ?? false }, () => {
  test('runs a script atomically', async () => {
    await using namespace = await createNamespace('nft')
    await applyNft('add table ip own\nadd chain ip own one\n', namespace)
    const refused = applyNft('add chain ip own two\nadd rule ip own three accept\n', namespace)
    await assert.rejects(refused, (error) => error instanceof NftError && error.code === 'absent')
    const chains = (await listNftTable('ip', 'own', namespace))?.flatMap(
      (one) => (one['chain'] as [] | undefined) ?? [],
    )
    assert.deepEqual(
      chains?.map(({ name }: { name: string }) => name),
      ['one'],
    )
  })

  test('lists no missing table, and deletes a missing table without an error', async () => {
    await using namespace = await createNamespace('nft')
    await applyNft('add table ip own\nadd table ip other\n', namespace)
    assert.equal(await listNftTable('ip', 'none', namespace), undefined)
    assert.equal(await listNft(['list chain ip own none'], namespace), undefined)
    await deleteNftTable('ip', 'none', namespace)
    await deleteNftTable('ip', 'own', namespace)
    assert.deepEqual(await listNftTables(namespace), ['ip other'])
  })

  test('omits elements from a terse list', async () => {
    await using namespace = await createNamespace('nft')
    await applyNft(
      'add table ip6 own\nadd set ip6 own some { type ipv6_addr; }\nadd element ip6 own some { fd00::1 }\n',
      namespace,
    )
    const [whole, terse] = [
      JSON.stringify(await listNftTable('ip6', 'own', namespace)),
      JSON.stringify(await listNftTable('ip6', 'own', { ...namespace, terse: true })),
    ]
    assert.match(whole, /fd00::1/)
    assert.doesNotMatch(terse, /fd00::1/)
    assert.match((await listNft(['list set ip6 own some'], namespace)) ?? '', /fd00::1/)
  })

  test('fails with code "missing" if it is not installed', async () => {
    const failed = applyNft('', { program: '/nowhere/nft' })
    await assert.rejects(failed, (error) => error instanceof NftError && error.code === 'missing')
  })
})
