import assert from 'node:assert/strict'
import { test } from 'node:test'

import { versionInfo } from '#model/version.ts'

import { versionProblem } from './matching-version.ts'

test('kubectl --match-server-version accepts versions with the same git commit', () => {
  assert.equal(versionProblem({ ...versionInfo(), platform: 'other' }, versionInfo()), undefined)
  assert.match(
    versionProblem(versionInfo('v1.30.0'), versionInfo()) ?? '',
    /^server version \(&version\.Info\{Major:"1", .*GitVersion:"v1\.30\.0".*\}\) differs from client version \(version\.Info\{Major:/,
  )
})
