import assert from 'node:assert/strict'
import { test } from 'node:test'

import { convertToV3 } from './v2-to-v3.ts'

test('the OpenAPI v2 to v3 conversion moves bodies, responses, parameters and references to their v3 positions', () => {
  const schema = { $ref: '#/definitions/W' }
  const post = {
    operationId: 'createW',
    description: 'make one',
    consumes: ['*/*'],
    produces: ['application/json', 'application/yaml'],
    schemes: ['https'],
    parameters: [
      { name: 'body', in: 'body', required: true, schema },
      { name: 'dryRun', in: 'query', type: 'string', uniqueItems: true, description: 'try' },
    ],
    responses: { '200': { description: 'OK', schema }, '401': { description: 'Unauthorized' } },
    'x-kubernetes-action': 'post',
  }
  const parameters = [{ name: 'namespace', in: 'path', type: 'string', required: true }]
  const document = {
    info: { title: 't' },
    paths: { '/w': { post, parameters } },
    definitions: { W: { items: schema } },
  }
  const moved = { $ref: '#/components/schemas/W' }
  const content = { 'application/json': { schema: moved }, 'application/yaml': { schema: moved } }
  assert.deepEqual(convertToV3(document), {
    openapi: '3.0.0',
    info: { title: 't' },
    paths: {
      '/w': {
        post: {
          operationId: 'createW',
          description: 'make one',
          'x-kubernetes-action': 'post',
          parameters: [
            { name: 'dryRun', in: 'query', description: 'try', schema: { type: 'string', uniqueItems: true } },
          ],
          requestBody: { content: { '*/*': { schema: moved } }, required: true },
          responses: { '200': { description: 'OK', content }, '401': { description: 'Unauthorized' } },
        },
        parameters: [{ name: 'namespace', in: 'path', required: true, schema: { type: 'string' } }],
      },
    },
    components: { schemas: { W: { items: moved } } },
  })
})

test('the OpenAPI v2 to v3 conversion keeps malformed parts unchanged', () => {
  const odd = { paths: { '/a': 7, '/b': { get: null, post: { parameters: 'x', responses: [] } } } }
  assert.deepEqual(convertToV3(odd)['paths'], { '/a': 7, '/b': { get: null, post: { responses: {} } } })
})
