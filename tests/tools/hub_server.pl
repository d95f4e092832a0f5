#!/usr/bin/perl
# hub_server.pl DIRECTORY ID STATE: a Hugging Face hub in small, for tests, on a
# free port of 127.0.0.1. Serves the files of DIRECTORY as the model ID:
#   /api/models/ID[/revision/REV]   the list of files and the commit
#   /ID/resolve/REV/FILE            the file; weights redirect to /storage/FILE,
#                                   with size and sha256 in the redirect
#   /storage/FILE                   the bytes, with Range
# Writes its port to STATE/port and a line for each request to STATE/log. What a
# test puts into STATE makes it misbehave:
#   STATE/cut      number of bytes after which the next storage answer breaks off
#   STATE/sha256   is given out as the sha256 of weights
#   STATE/token    the only token that is let in
# Needs nothing but Perl's own modules, of those in Debian's perl-base.
use strict;
use warnings;
use IO::Socket::INET;

my ($directory, $id, $state) = @ARGV;
die "usage: hub_server.pl DIRECTORY ID STATE\n" unless defined $state;
my $commit = 'c0ffee' x 6 . 'c0ff';

sub content {
  my ($path) = @_;
  open my $file, '<:raw', $path or return undef;
  local $/;
  my $bytes = <$file>;
  $bytes =~ s/\n\z// if index($path, "$state/") == 0;
  return $bytes;
}

# Files below a folder, as paths from DIRECTORY.
sub list {
  my ($folder) = @_;
  opendir my $handle, "$directory/$folder" or return ();
  my @names = sort grep { !/^\./ } readdir $handle;
  return map { -d "$directory/$folder$_" ? list("$folder$_/") : "$folder$_" } @names;
}

sub sha256 {
  my ($path) = @_;
  my $given = content("$state/sha256");
  return $given if defined $given;
  open my $sum, '-|', 'sha256sum', $path or return '';
  return (split ' ', scalar <$sum>)[0];
}

sub answer {
  my ($client, $head_only, $status, $headers, $body, $cut) = @_;
  my $text = "HTTP/1.1 $status\r\nConnection: close\r\nContent-Length: " . length($body) . "\r\n";
  $text .= "$_\r\n" for @$headers;
  print $client "$text\r\n";
  return if $head_only;
  print $client defined $cut ? substr($body, 0, $cut) : $body;
}

sub storage {
  my ($client, $head_only, $file, $range) = @_;
  my $body = content("$directory/$file");
  return answer($client, $head_only, '404 Not Found', [], "none\n") unless defined $body;
  my $cut = content("$state/cut");
  unlink "$state/cut" if defined $cut;
  return answer($client, $head_only, '200 OK', ['Accept-Ranges: bytes'], $body, $cut)
    unless defined $range;
  my $size = length $body;
  return answer($client, $head_only, '416 Range Not Satisfiable', ["Content-Range: bytes */$size"], '')
    if $range >= $size;
  answer($client, $head_only, '206 Partial Content',
    ["Content-Range: bytes $range-" . ($size - 1) . "/$size"], substr($body, $range), $cut);
}

sub model_file {
  my ($client, $head_only, $file) = @_;
  my $path = "$directory/$file";
  return answer($client, $head_only, '404 Not Found', [], "Entry not found\n")
    if $file =~ m{(^|/)\.\.(/|$)} || !-f $path;
  return answer($client, $head_only, '200 OK', ['ETag: "' . 'a' x 40 . '"'], content($path))
    unless $file =~ /\.safetensors$/;
  answer($client, $head_only, '302 Found',
    ["Location: /storage/$file", 'X-Linked-Size: ' . -s $path,
     'X-Linked-ETag: "' . sha256($path) . '"'], '');
}

sub serve {
  my ($client) = @_;
  my $request = <$client>;
  return unless defined $request && $request =~ m{^(GET|HEAD) (\S+) HTTP};
  my ($method, $path, $range, $token) = ($1, $2, undef, '');
  while (my $line = <$client>) {
    last if $line =~ /^\r?\n$/;
    $range = $1 if $line =~ /^range:\s*bytes=(\d+)-\r?$/i;
    $token = $1 if $line =~ /^authorization:\s*Bearer (\S+)/i;
  }
  open my $log, '>>', "$state/log" or die "cannot write the log: $!\n";
  print $log "$method $path" . (defined $range ? " from $range" : '') . "\n";
  close $log;
  my $head_only = $method eq 'HEAD';
  my $wanted = content("$state/token");
  return answer($client, $head_only, '401 Unauthorized', [], "no\n")
    if defined $wanted && $wanted ne $token;
  if ($path =~ m{^/api/models/\Q$id\E(/revision/\S+)?$}) {
    my $files = join ', ', map { qq({"rfilename": "$_"}) } list('');
    answer($client, $head_only, '200 OK', [], qq({"id": "$id", "sha": "$commit", "siblings": [$files]}\n));
  } elsif ($path =~ m{^/\Q$id\E/resolve/[^/]+/(.+)$}) {
    model_file($client, $head_only, $1);
  } elsif ($path =~ m{^/storage/(.+)$}) {
    storage($client, $head_only, $1, $range);
  } else {
    answer($client, $head_only, '404 Not Found', [], "Repository not found\n");
  }
}

$SIG{PIPE} = 'IGNORE';
my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => 0, Listen => 16,
  ReuseAddr => 1) or die "cannot listen: $@\n";
open my $port, '>', "$state/port.new" or die "cannot write the port: $!\n";
print $port $server->sockport, "\n";
close $port;
rename "$state/port.new", "$state/port";
while (my $client = $server->accept) {
  binmode $client;
  serve($client);
  close $client;
}
