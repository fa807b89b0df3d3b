/** Checks that every path in docs/architecture.md, in the recipes and in the READMEs of `src` folders exists. */
import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'

const ROOT = join(import.meta.dirname, '..')
const PAGES = ['docs/architecture.md', ...globSync('{docs/recipes/*.md,src/*/README.md}', { cwd: ROOT })]

/** `room/folder/file.ts` and folders below `src`, or paths from the root of the repository. */
function pathsIn(text: string): string[] {
  const quoted = [...text.matchAll(/`([\w.-]+(?:\/[\w.*-]+)+)`/g)].map(([, path = '']) => path)
  return quoted.filter((path) => !path.includes('*') && !path.startsWith('hyperkube/'))
}

describe('documentation of the code', () => {
  for (const page of PAGES) {
    it(`mentions only files that exist: ${page}`, () => {
      const missing = pathsIn(readFileSync(join(ROOT, page), 'utf8')).filter(
        (path) => !existsSync(join(ROOT, 'src', path)) && !existsSync(join(ROOT, path)),
      )
      assert.deepEqual(missing, [])
    })
  }
})
