/** Tests `npm start` in a checkout: runs a bundle of the current sources, and rebuilds it only after a change. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { appendFileSync, cpSync, mkdtempSync, readdirSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'

const ROOT = join(import.meta.dirname, '..', '..')

describe('npm start', () => {
  const checkout = realpathSync(mkdtempSync(join(tmpdir(), 'hyperkube-checkout-')))
  after(() => rmSync(checkout, { recursive: true, force: true }))
  for (const part of ['bin', 'scripts', 'src', 'package.json', 'package-lock.json', 'tsconfig.json']) {
    cpSync(join(ROOT, part), join(checkout, part), { recursive: true, preserveTimestamps: true })
  }
  symlinkSync(join(ROOT, 'node_modules'), join(checkout, 'node_modules'))

  const start = (...args: readonly string[]): { readonly out: string; readonly err: string } => {
    const script = join(checkout, 'scripts', 'with-setup.mjs')
    const { status, stdout, stderr } = spawnSync(process.execPath, [script, 'start', ...args], { encoding: 'utf8' })
    assert.equal(status, 0, stderr)
    return { out: stdout, err: stderr }
  }
  const bundles = (): string[] => readdirSync(checkout).filter((name) => name.startsWith('.bundle-'))

  it('bundles the sources once', () => {
    assert.match(start('--help').err, /Bundling the sources/)
    const { out, err } = start('--help')
    assert.doesNotMatch(err, /Bundling/)
    assert.match(out, /--data-dir/)
    assert.equal(bundles().length, 1)
  })

  it('bundles the sources again if one changed, and keeps a few bundles for running clusters', () => {
    const file = join(checkout, 'src', 'cmd', 'cluster', 'up.ts')
    for (let change = 0; change < 4; change++) {
      appendFileSync(file, `// ${change}\n`)
      assert.match(start('--help').err, /Bundling the sources/)
    }
    assert.equal(bundles().length, 3)
  })
})
