import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { it } from 'node:test'

const ROOT = join(import.meta.dirname, '..')

it('docs/firm-ground.md names only tests that exist', () => {
  const page = readFileSync(join(ROOT, 'docs/firm-ground.md'), 'utf8')
  const named = [...page.matchAll(/`(?:node )?((?:src|test|scripts)\/\S+?\.ts)/g)].map(([, path = '']) => path)
  assert.ok(named.length > 60)
  assert.deepEqual(
    named.filter((path) => !existsSync(join(ROOT, path))),
    [],
  )
})
