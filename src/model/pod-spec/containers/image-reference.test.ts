import assert from 'node:assert/strict'
import { describe, it } from 'node:test'

import { imageTag } from './image-reference.ts'

const digest = `sha256:${'a'.repeat(64)}`

const tags: readonly [image: string, tag: string][] = [
  ['nginx', 'latest'],
  ['nginx:1.27', '1.27'],
  ['library/nginx', 'latest'],
  ['index.docker.io/nginx:x', 'x'],
  ['registry.example.com:5000/team/app', 'latest'],
  ['localhost/app:dev', 'dev'],
  ['localhost:5000/app', 'latest'],
  ['[::1]:5000/app:v1', 'v1'],
  [`app@${digest}`, ''],
  [`app:1@${digest}`, '1'],
  // A first part with capitals must be a host.
  ['Host/app', 'latest'],
  // Invalid references.
  ['', ''],
  ['Nginx', ''],
  ['app:', ''],
  ['app:bad tag', ''],
  [' app', ''],
  ['a//b', ''],
  ['app@sha256:abc', ''],
  [`app@sha256:${'A'.repeat(64)}`, ''],
  ['a'.repeat(64), ''],
  [`${'x'.repeat(256)}:1`, ''],
]

describe('imageTag() of an image reference', () => {
  for (const [image, tag] of tags) {
    it(`${tag.length === 0 ? 'finds no tag' : `finds the tag "${tag}"`} in "${image.slice(0, 40)}"`, () => {
      assert.equal(imageTag(image), tag)
    })
  }
})
