import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'

import { CLUSTER_DEFENCES } from '../reliability/management/cluster-defences.ts'
import { CONSOLE_DEFENCES } from '../reliability/management/console-defences.ts'
import { PAST_DEFENCES } from '../reliability/management/past-defences.ts'
import { PEOPLE_DEFENCES } from '../reliability/management/people-defences.ts'

const ROOT = join(import.meta.dirname, '..', '..')
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8')

describe('The table of defences', () => {
  for (const {
    attack,
    file,
    text,
    test: [testFile, name],
  } of [...CLUSTER_DEFENCES, ...PEOPLE_DEFENCES, ...CONSOLE_DEFENCES, ...PAST_DEFENCES]) {
    it(`names code and a test that exist for ${attack}`, () => {
      assert.equal(read(file).split(text).length - 1, 1, `${file} has the text once`)
      const tests = read(testFile)
      // Names of a table have a pattern in the file.
      assert.ok(tests.includes(`it('${name}'`) || tests.includes('it(`') || name === '', `${testFile}: ${name}`)
    })
  }
})
