/** What a kubelet counts of images. */

export const IMAGE_FAMILIES = {
  kubelet_image_garbage_collected_total: [
    'counter',
    'ALPHA',
    'reason',
    'Total number of images garbage collected by the kubelet, whether through disk usage or image age.',
  ],
  kubelet_image_manager_ensure_image_requests_total: [
    'counter',
    'ALPHA',
    'present_locally pull_policy pull_required',
    'Number of ensure-image requests processed by the kubelet.',
  ],
  kubelet_imagemanager_image_mustpull_checks_total: [
    'counter',
    'ALPHA',
    'result',
    'Counter for how many times kubelet checked whether credentials need to be re-verified to access an image',
  ],
  kubelet_imagemanager_ondisk_pulledrecords: ['gauge', 'ALPHA', '', 'Number of ImagePulledRecords stored on disk.'],
  kubelet_imagemanager_ondisk_pullintents: ['gauge', 'ALPHA', '', 'Number of ImagePullIntents stored on disk.'],
  kubelet_image_pull_duration_seconds: [
    'histogram',
    'ALPHA',
    'image_size_in_bytes',
    'Duration in seconds to pull an image.',
    { buckets: 'pull' },
  ],
  kubelet_image_volume_mounted_errors_total: ['counter', 'BETA', '', 'Number of failed image volume mounts.'],
  kubelet_image_volume_mounted_succeed_total: ['counter', 'BETA', '', 'Number of successful image volume mounts.'],
  kubelet_image_volume_requested_total: ['counter', 'BETA', '', 'Number of requested image volumes.'],
} as const
