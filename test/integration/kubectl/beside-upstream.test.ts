/**
 * Runs a fixed sample of the command lines of `test/upstream/kubectl.ts` with our kubectl, and with upstream's kubectl
 * if it was built.
 */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import { judge } from '../../upstream/kubectl/judge.ts'
import { UPSTREAM_VERSION } from '../../upstream/programs.ts'

const UPSTREAM = join(homedir(), '.cache', 'hyperkube', 'upstream', UPSTREAM_VERSION, 'kubectl')
const skip = existsSync(UPSTREAM) ? false : "upstream's kubectl was not built: node test/upstream/kubectl.ts does"

/** Scenes that read, or that create objects without sending them, so that no line waits for controllers. */
const SCENES = /^(?:create-more|describe|explain)\//
const LINES = 60

void test("our kubectl prints the same as upstream's kubectl", { skip }, async () => {
  const verdicts = await judge({ scene: SCENES, sample: LINES, seed: 3, jobs: 2, asProgram: false }, () => undefined)
  const different = verdicts.filter(({ differences, listed }) => differences.length > 0 && listed === undefined)
  assert.deepEqual(
    different.map(({ line, differences }) => [line, ...differences]),
    [],
  )
  assert.notEqual(verdicts.length, 0)
})
