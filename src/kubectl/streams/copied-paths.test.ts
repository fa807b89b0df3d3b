import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { readTar } from '#lib/files/tar-read.ts'
import { TAR_END, tarHeaders } from '#lib/files/tar-write.ts'

import { archivePrefix, fileSpecOf, isWithin, joined } from './copied-paths.ts'

describe('file arguments of kubectl cp', () => {
  it('are local or remote', () => {
    assert.deepEqual(fileSpecOf('/tmp/x/'), { namespace: '', pod: '', file: '/tmp/x' })
    assert.deepEqual(fileSpecOf('pod:x'), { namespace: '', pod: 'pod', file: 'x' })
    assert.deepEqual(fileSpecOf('ns/pod:/x:y'), { namespace: 'ns', pod: 'pod', file: '/x:y' })
    assert.throws(() => fileSpecOf(':x'), /canonical format/)
    assert.throws(() => fileSpecOf('a/b/c:x'), /canonical format/)
  })
})

describe('archive paths of kubectl cp', () => {
  it('begin with the source path, without the prefix that tar removes', () => {
    assert.equal(archivePrefix('/tmp/x'), 'tmp/x')
    assert.equal(archivePrefix('../../x'), 'x')
    assert.equal(archivePrefix('.'), '')
  })

  it('never leave the target directory (CVE-2018-1002100, CVE-2019-1002101, CVE-2019-11246)', () => {
    const targets = ['out', '/tmp/out', '../out', '.']
    for (const target of targets) {
      assert.ok(isWithin(target, joined(target, 'a/b')))
      assert.ok(isWithin(target, joined(target, '')))
      for (const name of ['../x', '/../x', 'a/../../x', '/../../../etc/passwd']) {
        assert.ok(!isWithin(target, joined(target, name)), `${target} ${name}`)
      }
    }
  })
})

describe('long file names in kubectl cp', () => {
  it('survive a tar archive unchanged', async () => {
    const name = `${'n'.repeat(300)}/f`
    const link = 'l'.repeat(200)
    const archive = Buffer.concat([
      tarHeaders({ name, mode: 0o644 }, 0),
      tarHeaders({ name: 's', mode: 0o777, link }, 0),
      TAR_END,
    ])
    async function* pieces(): AsyncGenerator<Buffer> {
      yield archive
    }
    const found: string[] = []
    for await (const entry of readTar(pieces())) found.push(`${entry.type} ${entry.name} ${entry.link}`)
    assert.deepEqual(found, [`file ${name} `, `link s ${link}`])
  })
})
