/** What the guides show is what runs. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'

const ROOT = join(import.meta.dirname, '..', '..')
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

describe('the guide to tests', () => {
  it('shows the example as it is', () => {
    const [, shown] = /```ts\n(.*?)```/s.exec(read('docs/guide/test-your-operator.md')) ?? []
    assert.equal(shown, read('examples/cluster.test.ts'))
  })

  it('shows an example whose tests pass', () => {
    const { NODE_TEST_CONTEXT: _ours, ...env } = process.env
    const args = ['--conditions=hyperkube-source', '--test', join(ROOT, 'examples/cluster.test.ts')]
    const { status, stdout } = spawnSync(process.execPath, args, { encoding: 'utf8', env })
    assert.equal(status, 0, stdout)
    assert.match(stdout, /pass 3/)
  })
})
