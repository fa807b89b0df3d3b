/** Checks that `npm ci` accepts the lock file on every platform. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'

interface Locked {
  readonly integrity?: string
  readonly resolved?: string
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

const { packages } = JSON.parse(readFileSync(join(import.meta.dirname, '..', 'package-lock.json'), 'utf8')) as {
  packages: Record<string, Locked>
}

describe('package-lock.json', () => {
  it('contains the optional packages of all platforms, because npm ci requires them', () => {
    const missing = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies).filter(
        (name) => !(`node_modules/${name}` in packages || `${path}/node_modules/${name}` in packages),
      ),
    )
    // A registry that does not have some of them yet makes such a lock file: take the versions before.
    assert.deepEqual(missing, [])
  })

  it('identifies each package by its hash, without a download URL', () => {
    const installed = Object.entries(packages).filter(([path]) => path !== '')
    assert.deepEqual(
      installed.filter(([, { integrity, resolved }]) => integrity === undefined || resolved !== undefined),
      [],
    )
  })
})
