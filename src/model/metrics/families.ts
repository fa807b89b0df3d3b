/** Every family the API server may show, under upstream's names, types, labels and buckets. */
import { createMeters, type FamilyRow, type Meters } from '#lib/metrics-table.ts'
import { createRegistry, type Registry } from '#lib/metrics.ts'

import { ACCESS_FAMILIES } from './access-families.ts'
import { ADMISSION_FAMILIES } from './admission-families.ts'
import { AGGREGATOR_FAMILIES } from './aggregator-families.ts'
import { type BucketName, BUCKETS } from './buckets.ts'
import { COMPONENT_FAMILIES } from './component-families.ts'
import { FLOW_FAMILIES } from './flow-families.ts'
import { REQUEST_FAMILIES } from './request-families.ts'
import { SERVICE_FAMILIES } from './service-families.ts'
import { STORAGE_FAMILIES } from './storage-families.ts'

type Families = typeof ACCESS_FAMILIES &
  typeof ADMISSION_FAMILIES &
  typeof AGGREGATOR_FAMILIES &
  typeof COMPONENT_FAMILIES &
  typeof FLOW_FAMILIES &
  typeof REQUEST_FAMILIES &
  typeof SERVICE_FAMILIES &
  typeof STORAGE_FAMILIES

export const FAMILIES: Families & Readonly<Record<string, FamilyRow<BucketName>>> = {
  ...ACCESS_FAMILIES,
  ...ADMISSION_FAMILIES,
  ...AGGREGATOR_FAMILIES,
  ...COMPONENT_FAMILIES,
  ...FLOW_FAMILIES,
  ...REQUEST_FAMILIES,
  ...SERVICE_FAMILIES,
  ...STORAGE_FAMILIES,
}

/** What everything that records is handed. */
export type ServerMeters = Meters<Families>

export function createServerMeters(registry: Registry = createRegistry()): ServerMeters {
  return createMeters<Families, BucketName>(registry, FAMILIES, BUCKETS)
}
