/** Every flag of kube-apiserver, in upstream's groups and order. */
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
} from '#component/flags/general-flags.ts'
import { METRICS_FLAGS, type MetricsValues } from '#component/flags/metrics-flags.ts'
import { SERVING_FLAGS, type ServingValues, STORAGE_FLAGS, type StorageValues } from '#component/flags/serving-flags.ts'
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
 * The settings of one API server, by the names of kube-apiserver's flags. Files are given by path, and reloaded where
 * upstream reloads them.
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

/** The defaults of all flags, except for `chosen`. */
export function settingsWith(chosen: Partial<Settings>): Settings {
  const flags = Object.values(APISERVER_FLAGS).flatMap((group) => Object.entries(group))
  const defaults = Object.fromEntries(flags.map(([name, { initial }]) => [name, initial]))
  return { ...(defaults as unknown as Settings), ...chosen }
}
