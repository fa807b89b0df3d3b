/** Every flag of kube-apiserver, in upstream's groups and order. */
import type { FlagGroups } from '#lib/flags/flags.ts'

import {
  ADMISSION_FLAGS,
  type AdmissionValues,
  AUTHENTICATION_FLAGS,
  type AuthenticationValues,
  AUTHORIZATION_FLAGS,
  type AuthorizationValues,
  ENABLEMENT_FLAGS,
  type EnablementValues,
} from './access-flags.ts'
import { AUDIT_FLAGS, type AuditValues } from './audit-flags.ts'
import {
  CLOUD_FLAGS,
  EGRESS_FLAGS,
  FEATURE_FLAGS,
  type FeatureValues,
  GENERIC_FLAGS,
  type GenericValues,
  MISC_FLAGS,
  type MiscValues,
  SERVER_LOG_FLAGS,
  TRACE_FLAGS,
  type TraceValues,
} from './general-flags.ts'
import { METRICS_FLAGS, type MetricsValues } from './metrics-flags.ts'
import { SERVING_FLAGS, type ServingValues, STORAGE_FLAGS, type StorageValues } from './serving-flags.ts'

export const APISERVER_FLAGS: FlagGroups = {
  generic: GENERIC_FLAGS,
  etcd: STORAGE_FLAGS,
  'secure serving': SERVING_FLAGS,
  auditing: { ...AUDIT_FLAGS },
  features: FEATURE_FLAGS,
  authentication: AUTHENTICATION_FLAGS,
  authorization: AUTHORIZATION_FLAGS,
  'cloud provider': CLOUD_FLAGS,
  'API enablement': { ...ENABLEMENT_FLAGS },
  'egress selector': EGRESS_FLAGS,
  admission: ADMISSION_FLAGS,
  metrics: METRICS_FLAGS,
  logs: SERVER_LOG_FLAGS,
  traces: TRACE_FLAGS,
  misc: MISC_FLAGS,
}

/**
 * What one API server is told, by the names of upstream's flags: whoever knows kube-apiserver knows them. Files are named,
 * not held, and are followed where upstream follows them.
 */
export interface Settings
  extends
    GenericValues,
    StorageValues,
    ServingValues,
    AuditValues,
    AuthenticationValues,
    AuthorizationValues,
    EnablementValues,
    AdmissionValues,
    FeatureValues,
    MetricsValues,
    TraceValues,
    MiscValues {}

/** The defaults of all flags, but for `chosen`. */
export function settingsWith(chosen: Partial<Settings>): Settings {
  const flags = Object.values(APISERVER_FLAGS).flatMap((group) => Object.entries(group))
  const defaults = Object.fromEntries(flags.map(([name, { initial }]) => [name, initial]))
  return { ...(defaults as unknown as Settings), ...chosen }
}
