import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, it } from 'node:test'

const ROOT = join(import.meta.dirname, '..', '..', '..')
/** Each takes as long to load as all of kubectl. */
const SLOW = ['tls', 'http', 'http2', 'child_process', 'worker_threads', 'zlib']
const LINE = `
process.argv.splice(1, 0, 'kubectl')
process.on('exit', () => console.error(JSON.stringify(process.moduleLoadList)))
const { start } = await import('./src/cmd/kubectl.ts')
start()
`

describe('the start of kubectl', () => {
  for (const args of [
    ['version', '--client'],
    ['get', '--help'],
    ['config', 'get-contexts', '--kubeconfig', '/dev/null'],
    ['create', 'configmap', 'x', '--dry-run=client', '-o', 'yaml', '--from-literal=a=b'],
  ])
    it(`loads no connection modules for the command ${args.slice(0, 2).join(' ')}`, () => {
      const { stderr, status } = spawnSync(process.execPath, ['--input-type=module', '-e', LINE, '--', ...args], {
        cwd: ROOT,
        encoding: 'utf8',
      })
      assert.equal(status, 0, stderr)
      const loaded = new Set(JSON.parse(stderr.trim().split('\n').at(-1) ?? '') as string[])
      assert.deepEqual(
        SLOW.filter((name) => loaded.has(`NativeModule ${name}`)),
        [],
      )
    })
})
