import assert from 'node:assert/strict'
import { test } from 'node:test'

import { localApiServices } from '#apiserver/bootstrap/apiservices.ts'
import {
  mandatoryFlowSchemas,
  mandatoryPriorityLevels,
  suggestedFlowSchemas,
  suggestedPriorityLevels,
} from '#apiserver/bootstrap/flow-control.ts'

import { apiService } from '../apiregistration/apiservice.ts'
import { judge } from '../rules.fixture.ts'
import { flowSchema } from './flowschema.ts'
import { priorityLevelConfiguration } from './prioritylevelconfiguration.ts'

test('what a server begins with is in order and needs no defaults', async () => {
  for (const level of [...mandatoryPriorityLevels, ...suggestedPriorityLevels]) {
    const { errors, object } = await judge(priorityLevelConfiguration).create(level)
    assert.deepEqual([errors, object.spec], [[], level.spec], level.metadata.name ?? '')
  }
  for (const schema of [...mandatoryFlowSchemas, ...suggestedFlowSchemas]) {
    const { errors, object } = await judge(flowSchema).create(schema)
    assert.deepEqual([errors, object.spec], [[], schema.spec], schema.metadata.name ?? '')
  }
  for (const service of localApiServices(() => true)) {
    assert.deepEqual((await judge(apiService).create(service)).errors, [], service.metadata.name ?? '')
  }
})
