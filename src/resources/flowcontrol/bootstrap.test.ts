import assert from 'node:assert/strict'
import { test } from 'node:test'

import { localApiServices } from '#apiserver/bootstrap/apiservices.ts'
import {
  mandatoryFlowSchemas,
  mandatoryPriorityLevels,
  suggestedFlowSchemas,
  suggestedPriorityLevels,
} from '#apiserver/fairness/default-objects.ts'

import { apiService } from '../apiregistration/apiservice.ts'
import { tryRules } from '../rules.fixture.ts'
import { flowSchema } from './flowschema.ts'
import { priorityLevelConfiguration } from './prioritylevelconfiguration.ts'

test('the default FlowSchemas and PriorityLevelConfigurations are valid and have all default values', async () => {
  for (const level of [...mandatoryPriorityLevels, ...suggestedPriorityLevels]) {
    const { errors, object } = await tryRules(priorityLevelConfiguration).create(level)
    assert.deepEqual([errors, object.spec], [[], level.spec], level.metadata.name ?? '')
  }
  for (const schema of [...mandatoryFlowSchemas, ...suggestedFlowSchemas]) {
    const { errors, object } = await tryRules(flowSchema).create(schema)
    assert.deepEqual([errors, object.spec], [[], schema.spec], schema.metadata.name ?? '')
  }
  for (const service of localApiServices(() => true)) {
    assert.deepEqual((await tryRules(apiService).create(service)).errors, [], service.metadata.name ?? '')
  }
})
